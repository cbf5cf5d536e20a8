/**
 * Displays runs and ladders in Temporal's Web UI: tables of steps and of levels, and search attributes. A run shows the
 * table of its steps while it is running, and whether it waits for a review.
 */

import { labelOf } from '@capstan/core/ladder/levels';
import type { DrivenRun, Unit } from '@capstan/core/run/drive';
import type { MachineState, MachineStepState, RunOutcome } from '@capstan/core/run/machine';
import type { LadderPosition, LadderStage, RunPipelineInput } from '@capstan/core/workflow-payloads';
import { defineSearchAttributeKey, SearchAttributeType, TypedSearchAttributes } from '@temporalio/common';
import { setCurrentDetails, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';

/**
 * Lines of Markdown as details of a workflow. The Web UI draws them in a frame that is too short by the margins of the
 * page, and cuts off an empty paragraph instead.
 */
function toDetails(lines: readonly string[]): string {
  return [...lines, '', '\u00a0'].join('\n');
}

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

/** One line without characters that would end its cell. */
function toCell(text: string): string {
  const line = text.slice(0, longest).replaceAll(/\s+/g, ' ').replaceAll('|', '¦');
  return text.length > longest ? `${line}…` : line;
}

type TableInput = Pick<RunPipelineInput, 'run_url' | 'dispatch_reasons'>;

/** Collects notes on finished steps, keeping the most recent ones. Steps are indexes of the plan. */
interface ProgressTable {
  note(step: number, note: StepNote): void;
  /** Records why a step, or one of its items, ended as it did, where that is not obvious. */
  end(step: number, text: string): void;
  /** Records what a step, or one of its items, waits for; null when the wait is over. */
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

/** The state in one word: `paused` also while units in flight end. */
function describeRun({ phase, isPaused }: MachineState): string {
  return phase === 'running' && isPaused ? 'paused' : phase;
}

/**
 * The run as a Markdown table, for Temporal's Web UI. It shows at most `shown` steps, the most relevant first, so that
 * writing it costs the same for ten steps as for ten thousand.
 */
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

/** The search attributes of a run and of its ladders; written only when one of them changes. */
function keyword(name: string) {
  return defineSearchAttributeKey(name, SearchAttributeType.KEYWORD);
}

const awaitingHuman = defineSearchAttributeKey('AwaitingHuman', SearchAttributeType.BOOL);
const runPhase = keyword('RunPhase');
const projectId = keyword('ProjectId');

export function announcePhase(input: RunPipelineInput, phase: RunOutcome | 'running' | 'paused'): void {
  if (input.has_search_attributes) upsertSearchAttributes([{ key: runPhase, value: phase }]);
}

function announceWaiting(input: RunPipelineInput, isAwaiting: boolean): void {
  if (input.has_search_attributes) upsertSearchAttributes([{ key: awaitingHuman, value: isAwaiting }]);
}

/** For a ladder outside a run: the server knows the attribute if the ladder was started with others. */
export function announceLadderWaiting(isAwaiting: boolean): void {
  const { typedSearchAttributes } = workflowInfo();
  if (typedSearchAttributes.get(projectId) === undefined) return;
  upsertSearchAttributes([{ key: awaitingHuman, value: isAwaiting }]);
}

/** The search attributes of a step's ladder. */
export function searchableLadder({
  has_search_attributes,
  project_id,
  pipeline,
  version,
}: RunPipelineInput): { readonly typedSearchAttributes?: TypedSearchAttributes } {
  if (!has_search_attributes) return {};
  return {
    typedSearchAttributes: new TypedSearchAttributes([
      { key: keyword('PipelineName'), value: pipeline },
      { key: keyword('PipelineVersion'), value: version },
      { key: projectId, value: project_id },
    ]),
  };
}

export interface RunProgress {
  /** Records a note on a unit that has succeeded. */
  note(unit: Unit, note: StepNote): void;
  /** Shows why a unit ended as it did. */
  end(unit: Unit, text: string): void;
  /** Shows what the unit waits for; null when the wait is over. */
  remark(unit: Unit, text: string | null): void;
  /** Updates whether the run waits for a review, on change. */
  announce(): void;
  /** Writes the table at the end of the current turn. */
  refresh(): void;
  /** Writes the table now. @param outcome of a run that has ended */
  show(outcome: RunOutcome): void;
}

export function createRunProgress(input: RunPipelineInput, { state }: DrivenRun): RunProgress {
  const table = createProgressTable(input);
  let isAwaiting = state.reviews > 0;
  const show = (outcome?: RunOutcome): void => setCurrentDetails(table.toMarkdown(state, outcome));
  const refresh = onceATurn(show);
  return {
    note: ({ index }, note) => {
      table.note(index, note);
      refresh();
    },
    end: ({ index, item }, text) => {
      table.end(index, item === 0 ? text : `[${item}] ${text}`);
      refresh();
    },
    remark: ({ index }, text) => {
      table.remark(index, text);
      refresh();
    },
    announce: () => {
      const isNow = state.reviews > 0;
      if (isNow === isAwaiting) return;
      isAwaiting = isNow;
      announceWaiting(input, isNow);
    },
    refresh,
    show,
  };
}

/** The table is written once per activation, for any number of ended steps. */
function onceATurn(work: () => void): () => void {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    void Promise.resolve().then(() => {
      isDue = false;
      work();
    });
  };
}

// A ladder as a Markdown table, for Temporal's Web UI: its last positions, with the work done there.

export interface LadderTable {
  enter(place: Pick<LadderPosition, 'transition' | 'command'>): void;
  toMarkdown(): string;
}

export function createLadderTable(title: string): LadderTable {
  const rows: string[] = [];
  return {
    enter: ({ transition, command }) => {
      rows.push(`| ${transition} | ${describeCommand(command)} |`);
      if (rows.length > shown) rows.shift();
    },
    toMarkdown: () => toDetails([title, '', '| | now |', '|---|---|', ...rows]),
  };
}

/** One line without characters that would end a cell. */
export function describeCommand(command: LadderStage): string {
  switch (command.type) {
    case 'execute':
      return `execute at level ${command.level} (${labelOf(command.level)})`;
    case 'advise':
      return `ask level ${command.level} (${labelOf(command.level)}) for advice`;
    case 'end':
      return describeEnd(command);
  }
}

function describeEnd(end: Extract<LadderStage, { type: 'end' }>): string {
  switch (end.outcome) {
    case 'succeeded':
      return end.skill_id === undefined ? 'succeeded' : `succeeded, skill ${end.skill_id}`;
    case 'skipped':
      return 'skipped by a person';
    case 'failed':
    case 'cancelled':
      return `${end.outcome} (${end.error.code})`;
    case 'review':
      return `in_review, due ${end.due_at}, ${end.review_id}`;
    case 'held':
      return `held by ${end.in_line === undefined ? 'the pause of its run' : 'the line for a free slot'}, before: ${describeCommand(end.from.command)}`;
  }
}
