/**
 * Names and texts in Temporal's Web UI: workflow ids, search attributes, and summaries, which describe an event of a
 * run's history on one line. A replay does not compare summaries. Temporal refuses to start a workflow with a summary
 * of more than 400 bytes as JSON, and lines of the Web UI are short, so each summary is cut.
 */
import type { Awaiting } from './contracts/run-step.ts';
import type { Unit } from './run/drive.ts';
import type { Wait } from './run/machine-state.ts';
import type { WaitReference } from './workflow-payloads.ts';

/**
 * Workflow ids, which people see first in Temporal's Web UI. Ids of runs and escalations are unique by themselves. The
 * prefix names the kind, and a search by prefix finds all of that kind.
 */

export interface RunRef {
  readonly pipeline: string;
  readonly run_id: string;
}

/** `trailer/run_01…` */
export function runWorkflowId({ pipeline, run_id }: RunRef): string {
  return `${pipeline}/${run_id}`;
}

interface LadderRef {
  readonly step_id: string;
  /** 0: the step itself, without items. */
  readonly item: number;
  /** From 1; each decision of a person begins another round. */
  readonly round: number;
}

/** `trailer/run_01…/cut/ladder`, `…/cut/3/ladder` of an item, `…/ladder/r2` after a decision. */
export function ladderWorkflowId(run: RunRef, { step_id, item, round }: LadderRef): string {
  const unit = item === 0 ? step_id : `${step_id}/${item}`;
  return `${runWorkflowId(run)}/${unit}/ladder${round === 1 ? '' : `/r${round}`}`;
}

/** The workflow id of a ladder outside a run: `ladder/esc_01…` */
export function aloneWorkflowId(escalationId: string): string {
  return `ladder/${escalationId}`;
}

/** The workflow id of a schedule and of its starts, to which Temporal appends their time: `trailer/sch_01…`. */
export function scheduleWorkflowId(pipeline: string, scheduleId: string): string {
  return `${pipeline}/${scheduleId}`;
}

/**
 * The search attributes of runs and of their ladders in Temporal, with their types. The setup of the stack creates
 * them. A ladder has the pipeline and the project of its run, but no phase, so searches by phase find runs only.
 */
export const searchAttributes = {
  PipelineName: 'Keyword',
  PipelineVersion: 'Keyword',
  ProjectId: 'Keyword',
  RunPhase: 'Keyword',
  AwaitingHuman: 'Bool',
} as const;

const maxBytes = 200;

/** The length of a character in a JSON text of UTF-8, without `Buffer`, which the workflow sandbox does not have. */
function jsonBytesOf(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20 || (code >= 0xd800 && code <= 0xdfff)) return 6;
  if (character === '"' || character === '\\') return 2;
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}

/** Cuts to as many whole characters as fit. */
export function toSummary(text: string): string {
  let bytes = 0;
  let kept = '';
  let cut = '';
  for (const character of text) {
    bytes += jsonBytesOf(character);
    if (bytes > maxBytes) return `${cut}…`;
    kept += character;
    if (bytes <= maxBytes - 3) cut = kept;
  }
  return text;
}

/** `cut`, or `cut [3]` for its third item. */
export function nameUnit(stepId: string, item = 0): string {
  return item === 0 ? stepId : `${stepId} [${item}]`;
}

/** `cut → video.cut`: the unit and its capability or kind. @param why the reason for this request, if not obvious */
export function summarizeUnit({ step, item }: Unit, why = ''): string {
  const unit = `${nameUnit(step.id, item)} → ${step.capability}`;
  return toSummary(why === '' ? unit : `${unit}, ${why}`);
}

/** The summary of a judgement: `whether poll [3] is the last round`. */
export function summarizeJudgement({ step, item }: Unit): string {
  return toSummary(`whether ${nameUnit(step.id, item)} is the last round`);
}

const awaited: Readonly<Record<Awaiting, string>> = {
  review: 'a person',
  budget: 'money',
  capability: 'an instance',
  time: 'its time',
  run: 'the run that it started',
  slot: 'a free slot',
  retry: 'its next attempt',
  callback: 'an answer that comes later',
  event: 'the event',
};

/** `a person (rev_01…)`: the awaited object of a wait. */
export function describeAwaited({ awaiting, ref }: Pick<Wait, 'awaiting' | 'ref'>): string {
  const { review_id, run_id, event } = (ref ?? {}) as WaitReference;
  if (event !== undefined) return `${awaited[awaiting]} ${event}`;
  const id = review_id ?? run_id;
  return id === undefined ? awaited[awaiting] : `${awaited[awaiting]} (${id})`;
}

/** The summary of the wait's timer: `cut waits for money`. */
export function summarizeWait({ step, item }: Unit, wait: Wait): string {
  return toSummary(`${nameUnit(step.id, item)} waits for ${describeAwaited(wait)}`);
}

/** This many names fill a summary. */
const maxNames = 50;

/** `a, b [2]`, as many as fit. */
export function listUnits(units: readonly { readonly step_id: string; readonly item?: number }[]): string {
  return units
    .slice(0, maxNames)
    .map(({ step_id, item }) => nameUnit(step_id, item))
    .join(', ');
}

/** `3 short steps: a, b, then c`: the units that begin first, then those that follow in the same batch. */
export function summarizeBatch(first: readonly Unit[], followers: readonly Unit[]): string {
  const [only] = first;
  const count = first.length + followers.length;
  if (count === 1 && only !== undefined) return summarizeUnit(only);
  const named = [first, followers].flatMap((units) =>
    units.length === 0 ? [] : [units.map(({ step, item }) => nameUnit(step.id, item)).join(', ')],
  );
  return toSummary(`${count} short steps: ${named.join(', then ')}`);
}
