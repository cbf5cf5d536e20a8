/**
 * The run as a Markdown table, for Temporal's Web UI. It shows at most `shown` steps, those that matter first,
 * so that writing it costs the same in a run of ten steps and of ten thousand.
 */
import type { MachineState, MachineStepState, RunOutcome } from '../../core/run/machine.ts';
import type { RunPipelineInput } from '../../core/workflow-payloads/run-input.ts';
import { toDetails } from './details.ts';

const shown = 40;

export interface StepNote {
  readonly endpoint: string;
  readonly cost_usd: number;
  readonly duration_ms: number;
}

const symbols: Record<MachineStepState, string> = {
  pending: '·',
  running: '▶',
  escalating: '⇡',
  deciding: '·',
  waiting: '◍',
  succeeded: '✓',
  failed: '✗',
  unknown: '?',
  skipped: '–',
  cancelled: '■',
  reused: '✓',
};

const longest = 240;

/** One line that does not end its cell. */
function toCell(text: string): string {
  const line = text.slice(0, longest).replaceAll(/\s+/g, ' ').replaceAll('|', '¦');
  return text.length > longest ? `${line}…` : line;
}

type TableInput = Pick<RunPipelineInput, 'run_url' | 'dispatch_reasons'>;

/** Collects what is known of finished steps and the most recent ones among them. Steps are indexes of the plan. */
export interface ProgressTable {
  note(step: number, note: StepNote): void;
  /** Why a step, or one of its items, ended as it did, where that is not plain. */
  end(step: number, text: string): void;
  /** What a step, or one of its items, waits for; null when that is over. */
  remark(step: number, text: string | null): void;
  /** @param outcome of a run that has ended */
  toMarkdown(state: MachineState, outcome?: RunOutcome): string;
}

interface RowFacts {
  readonly note: StepNote | undefined;
  readonly text: string | undefined;
}

function toRow(state: MachineState, index: number, { note, text }: RowFacts): string {
  const step = state.plan.steps[index];
  const status = state.steps[index] ?? 'pending';
  const fan = state.fans.get(index);
  const items = fan === undefined ? '' : ` ${fan.next - fan.open} of ${fan.states.length}`;
  const remark = text === undefined ? '' : `, ${text}`;
  const facts = note ? `${note.endpoint} | ${note.cost_usd} | ${Math.round(note.duration_ms)} ms` : ' | | ';
  const way = step?.inline === true ? ', inline' : '';
  return `| ${step?.id} | ${step?.capability} | ${symbols[status]} ${status}${items}${way}${remark} | ${facts} |`;
}

/** In one word; it is paused until what is under way has ended, and after that. */
function describeRun({ phase, isPaused }: MachineState): string {
  return phase === 'running' && isPaused ? 'paused' : phase;
}

export function createProgressTable({ run_url, dispatch_reasons }: TableInput): ProgressTable {
  const notes = new Map<number, StepNote>();
  const remarks = new Map<number, string>();
  const ends = new Map<number, string>();
  const row = (state: MachineState, index: number): string =>
    toRow(state, index, { note: notes.get(index), text: remarks.get(index) ?? ends.get(index) });
  return {
    note: (step, note) => {
      notes.set(step, note);
      if (notes.size > shown) notes.delete(notes.keys().next().value as number);
    },
    end: (step, text) => {
      ends.set(step, toCell(text));
      if (ends.size > shown) ends.delete(ends.keys().next().value as number);
    },
    remark: (step, text) => {
      if (text === null) remarks.delete(step);
      else remarks.set(step, toCell(text));
    },
    toMarkdown: (state, outcome) => {
      const latest = state.ready.slice(Math.max(0, state.nextReady - shown), state.nextReady);
      const remarked = [...new Set([...ends.keys(), ...remarks.keys()])]
        .filter((index) => !latest.includes(index))
        .slice(-shown);
      const started = [...remarked, ...latest];
      const waiting = state.plan.steps.length - state.nextReady;
      return toDetails([
        `[Run](${run_url}): ${outcome ?? describeRun(state)}`,
        '',
        '| step | capability | state | instance | USD | took |',
        '|---|---|---|---|---|---|',
        ...started.map((index) => row(state, index)),
        ...(waiting > 0 ? ['', `${waiting} of ${state.plan.steps.length} steps have not started.`] : []),
        ...(dispatch_reasons.length > 0 ? ['', ...dispatch_reasons.map((reason) => `- ${reason}`)] : []),
      ]);
    },
  };
}
