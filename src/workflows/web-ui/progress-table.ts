/**
 * The run as a Markdown table, for Temporal's Web UI. It shows at most `shown` steps, those that matter first,
 * so that writing it costs the same in a run of ten steps and of ten thousand.
 */
import type { MachineState, MachineStepState } from '../../core/run/machine.ts';

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

/** Collects what is known of finished steps and the most recent ones among them. Steps are indexes of the plan. */
export interface ProgressTable {
  note(step: number, note: StepNote): void;
  /** What a step, or one of its items, waits for; null when that is over. */
  remark(step: number, text: string | null): void;
  toMarkdown(state: MachineState): string;
}

export function createProgressTable(runUrl: string): ProgressTable {
  const notes = new Map<number, StepNote>();
  const remarks = new Map<number, string>();
  const row = (state: MachineState, index: number): string => {
    const step = state.plan.steps[index];
    const status = state.steps[index] ?? 'pending';
    const fan = state.fans.get(index);
    const items = fan === undefined ? '' : ` ${fan.next - fan.open} of ${fan.states.length}`;
    const note = notes.get(index);
    const remark = remarks.has(index) ? `, ${remarks.get(index)}` : '';
    const facts = note ? `${note.endpoint} | ${note.cost_usd} | ${Math.round(note.duration_ms)} ms` : ' | | ';
    return `| ${step?.id} | ${step?.capability} | ${symbols[status]} ${status}${items}${remark} | ${facts} |`;
  };
  return {
    note: (step, note) => {
      notes.set(step, note);
      if (notes.size > shown) notes.delete(notes.keys().next().value as number);
    },
    remark: (step, text) => {
      if (text === null) remarks.delete(step);
      else remarks.set(step, text);
    },
    toMarkdown: (state) => {
      const latest = state.ready.slice(Math.max(0, state.nextReady - shown), state.nextReady);
      const remarked = [...remarks.keys()].filter((index) => !latest.includes(index)).slice(-shown);
      const started = [...remarked, ...latest];
      const waiting = state.plan.steps.length - state.nextReady;
      return [
        `[Run](${runUrl})`,
        '',
        '| step | capability | state | instance | USD | took |',
        '|---|---|---|---|---|---|',
        ...started.map((index) => row(state, index)),
        ...(waiting > 0 ? ['', `${waiting} of ${state.plan.steps.length} steps have not started.`] : []),
      ].join('\n');
    },
  };
}
