/**
 * The condition of a run and of a step, in one place. The state alone is not enough: a run in state `running` whose
 * items all wait for budget is waiting for budget. The condition derives from state, `awaiting` and counts of items.
 * List, header, graph, drawer, title and the command line use its words. If several apply, the first in the order of
 * `ConditionKind` wins, because a person can act on it soonest.
 */
import type { Run, RunPause, RunSummary } from '../contracts/run.ts';
import type { Awaiting, RunStep, StepState } from '../contracts/run-step.ts';
import { delimiters } from '../expression/language.ts';
import { countEnded, endedStepStates } from './ended-steps.ts';

export type ConditionKind =
  | 'failed'
  | 'cancelled'
  /** Enough other steps had succeeded, or too few could. */
  | 'called_off'
  /** It succeeded, and some items or optional steps failed. */
  | 'partly'
  | 'succeeded'
  | 'cancelling'
  /** Its workflow cannot make progress. */
  | 'stalled'
  | 'review'
  | 'budget'
  | 'capability'
  | 'paused'
  | 'retrying'
  /** It waits for a child run, or for another run that works on the same failure. */
  | 'run'
  | 'slot'
  | 'retry'
  | 'callback'
  /** It waits for an outside event. */
  | 'event'
  | 'time'
  | 'queued'
  | 'running';

export interface RunCondition {
  readonly kind: ConditionKind;
  /** The condition in a few words: `Waiting for budget`. */
  readonly title: string;
  /** The steps concerned, or the reason: `4 of 6 items of chapter`; empty when the title is enough. */
  readonly detail: string;
  /** The steps concerned. */
  readonly steps: readonly string[];
}

const titles: Readonly<Record<ConditionKind, string>> = {
  failed: 'Failed',
  cancelled: 'Cancelled',
  called_off: 'Called off',
  partly: 'Succeeded with failures',
  succeeded: 'Succeeded',
  cancelling: 'Cancelling',
  stalled: 'Its workflow cannot make progress',
  review: 'Waiting for review',
  budget: 'Waiting for budget',
  capability: 'Waiting for an instance',
  paused: 'Paused',
  retrying: 'Retrying',
  run: 'Waiting for a child run',
  slot: 'Waiting for a free slot',
  retry: 'Waiting for its next attempt',
  callback: 'Waiting for a later answer',
  event: 'Waiting for an event',
  time: 'Sleeping',
  queued: 'Queued',
  running: 'Running',
};

function condition(kind: ConditionKind, detail = '', steps: readonly string[] = []): RunCondition {
  return { kind, title: titles[kind], detail, steps };
}

type StateCounts = Readonly<Record<string, number>>;

const failedStates = ['failed', 'unknown'] as const;
/** A step or item in one of these states makes progress by itself. */
const activeStates = ['ready', 'running', 'retrying'] as const;
const blockedStates = ['waiting', 'in_review'] as const;

function sumOf(counts: StateCounts, states: readonly StepState[]): number {
  return states.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
}

function totalOf(counts: StateCounts): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

function plural(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? '' : 's'}`;
}

function firstLine(text: string): string {
  return text.replace(/\n.*/s, '');
}

/** Up to three names, and the number of the others. */
function namesOf(steps: readonly string[]): string {
  const shown = steps.slice(0, 3).join(', ');
  return steps.length > 3 ? `${shown} and ${steps.length - 3} more` : shown;
}

/** Waits that a person can end come first. */
const waitsByUrgency: readonly Awaiting[] = [
  'review',
  'budget',
  'capability',
  'event',
  'run',
  'slot',
  'retry',
  'callback',
  'time',
];

function mostUrgent(waits: readonly Awaiting[]): Awaiting | undefined {
  return waitsByUrgency.find((wait) => waits.includes(wait));
}

type ConditionStep = Pick<
  RunStep,
  'id' | 'state' | 'awaiting' | 'items' | 'max_rounds' | 'error' | 'review' | 'budget'
>;

/** What a step that is retried waits for, by its error; the list of runs has the same rule in `awaitedByStep`. */
const awaitedByError: Readonly<Record<string, Awaiting>> = {
  no_instance: 'capability',
  budget_reserved: 'budget',
};

/** Items that are retried wait too if the run waits for an instance. */
function waitOfItems(items: StateCounts, ofRun: readonly Awaiting[]): Awaiting | null {
  if ((items.in_review ?? 0) > 0 && sumOf(items, activeStates) === 0)
    return ofRun.includes('budget') && !ofRun.includes('review') ? 'budget' : 'review';
  if (sumOf(items, ['ready', 'running']) > 0) return null;
  if ((items.retrying ?? 0) > 0) return ofRun.includes('capability') ? 'capability' : null;
  return (items.waiting ?? 0) > 0 ? (mostUrgent(ofRun) ?? null) : null;
}

/**
 * The cause of a step's wait; null when it does not wait. The items of a step with `for_each` wait when none makes
 * progress; only the run knows their cause.
 */
function waitOf(
  { state, awaiting, items, error }: ConditionStep,
  ofRun: readonly Awaiting[],
): Awaiting | null {
  if (state === 'in_review') return awaiting ?? 'review';
  if (endedStepStates.has(state)) return null;
  if (awaiting !== undefined) return awaiting;
  if (items !== undefined) return waitOfItems(items, ofRun);
  return state === 'retrying' ? (awaitedByError[error?.code ?? ''] ?? null) : null;
}

function blockedItems({ id, max_rounds }: ConditionStep, items: StateCounts): string {
  if (max_rounds !== undefined) return `round ${totalOf(items)} of ${id}`;
  return `${sumOf(items, [...blockedStates, 'retrying'])} of ${plural(totalOf(items), 'item')} of ${id}`;
}

function failedItems(items: StateCounts): string {
  return `${sumOf(items, failedStates)} of ${plural(totalOf(items), 'item')} failed`;
}

/** Whether the pause of the run holds the step: no call of it is open. The run lists its first open calls. */
function isHeld({ id, state }: ConditionStep, { open_calls, open_call_count }: RunPause): boolean {
  return (
    sumOf({ [state]: 1 }, activeStates) > 0 &&
    open_calls.length === open_call_count &&
    !open_calls.some(({ step_id }) => step_id === id)
  );
}

/** Of a step, the run's waits are the only source of the causes for its items. */
type StepsRun = Partial<Pick<Run, 'awaiting' | 'pause'>>;

export function conditionOfStep(
  step: ConditionStep,
  { awaiting: ofRun = [], pause }: StepsRun = {},
): RunCondition {
  const { id, state, items, error } = step;
  if (state === 'failed' || state === 'unknown')
    return condition('failed', firstLine(error?.message ?? ''), [id]);
  if (state === 'cancelled') return cancelledStep(id, error);
  if (items !== undefined && state === 'succeeded' && sumOf(items, failedStates) > 0) {
    return condition('partly', failedItems(items), [id]);
  }
  if (endedStepStates.has(state)) return condition('succeeded', '', [id]);
  const wait = waitOf(step, ofRun);
  if (wait !== null)
    return condition(wait, items === undefined ? (step.budget ?? '') : blockedItems(step, items), [id]);
  if (pause !== undefined && isHeld(step, pause)) return condition('paused', '', [id]);
  if (state === 'retrying') return condition('retrying', firstLine(error?.message ?? ''), [id]);
  return condition(state === 'running' ? 'running' : 'queued', '', [id]);
}

function cancelledStep(id: string, error: ConditionStep['error']): RunCondition {
  const isCalledOff = error?.code === 'enough' || error?.code === 'not_enough';
  return isCalledOff
    ? condition('called_off', firstLine(error.message), [id])
    : condition('cancelled', '', [id]);
}

type ConditionRun = Pick<RunSummary, 'state' | 'error' | 'awaiting' | 'follows' | 'queue' | 'stalled'> &
  Partial<Pick<RunSummary, 'step_counts' | 'item_counts'> & Pick<Run, 'cancel' | 'pause'>> & {
    readonly steps?: readonly ConditionStep[];
  };

/** @param run from the list of runs or from its own page; only the page names steps */
export function conditionOfRun(run: ConditionRun): RunCondition {
  const { state, stalled } = run;
  const isOpen = state !== 'failed' && state !== 'cancelled' && state !== 'succeeded';
  if (isOpen && stalled !== undefined) return condition('stalled', firstLine(stalled.message));
  switch (state) {
    case 'failed':
      return failedRun(run);
    case 'cancelled':
      return cancelledRun(run);
    case 'succeeded':
      return succeededRun(run);
    case 'cancelling':
      return cancellingRun(run);
    case 'queued':
      return queuedRun(run);
    case 'paused':
    case 'running':
      return activeRun(run);
  }
}

function queuedRun({ queue }: ConditionRun): RunCondition {
  if (queue === undefined) return condition('queued');
  if (queue.reason === 'temporal') return condition('queued', 'Temporal has not accepted it yet');
  if (queue.reason === 'worker') return condition('queued', 'no worker has begun it yet');
  const { key = '', place = 1, limit = 1, holders = [] } = queue;
  const open = holders.length === 0 ? 'none of which is open' : `open: ${holders.join(', ')}`;
  const few = `at most ${plural(limit, 'run')} at a time, ${open}`;
  return condition('queued', `number ${place} for the key ${JSON.stringify(key)}; ${few}`);
}

function cancelledRun({ cancel, error }: ConditionRun): RunCondition {
  const said = condition('cancelled', firstLine(cancel?.reason ?? error?.message ?? ''));
  return withActor(said, cancel?.by);
}

/** The name of a key alone reads as the name of a person, or of a rule: `default`. */
function withActor(
  said: RunCondition,
  by: { readonly id: string; readonly name?: string | undefined } | undefined,
): RunCondition {
  if (by === undefined) return said;
  const isKey = by.id.startsWith('key_') && by.name !== undefined;
  return { ...said, title: `${said.title} by ${isKey ? 'the key ' : ''}${by.name ?? by.id}` };
}

function failedRun({ error, steps = [] }: ConditionRun): RunCondition {
  const failed = steps.filter(({ state }) => state === 'failed' || state === 'unknown');
  const ids = failed.map(({ id }) => id);
  const where = ids.length === 0 ? '' : `at ${namesOf(ids)}`;
  // The run's error repeats the name of the step.
  const [only, ...others] = failed;
  const own = others.length === 0 ? only?.error : undefined;
  const why = firstLine((own ?? error)?.message ?? '');
  return condition('failed', [where, why].filter((part) => part !== '').join(': '), ids);
}

function countsOf({ step_counts, steps = [] }: ConditionRun): StateCounts {
  if (step_counts !== undefined) return step_counts;
  const counts: Record<string, number> = {};
  for (const { state } of steps) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}

function succeededRun(run: ConditionRun): RunCondition {
  const { steps = [], item_counts = {} } = run;
  const optional = sumOf(countsOf(run), failedStates);
  const partly = steps.filter((step) => conditionOfStep(step).kind === 'partly');
  // The list has no steps, and the page counts items by step.
  const isListed = run.steps === undefined && sumOf(item_counts, failedStates) > 0;
  if (optional === 0 && partly.length === 0 && !isListed) return condition('succeeded');
  const said = [
    ...(optional === 0 ? [] : [`${plural(optional, 'optional step')} failed`]),
    ...(isListed ? [failedItems(item_counts)] : []),
    ...partly.map(({ id, items = {} }) => `${failedItems(items)} in ${id}`),
  ];
  const failed = steps.filter(({ state }) => state === 'failed' || state === 'unknown');
  return condition(
    'partly',
    said.slice(0, 3).join('; '),
    [...failed, ...partly].map(({ id }) => id),
  );
}

function cancellingRun(run: ConditionRun): RunCondition {
  const active = sumOf(countsOf(run), ['running', 'retrying']);
  return condition('cancelling', active === 0 ? '' : `waiting for ${plural(active, 'running step')}`);
}

/** The condition of a run that has not ended: its wait, or its work. */
function activeRun(run: ConditionRun): RunCondition {
  const { state, awaiting = [], follows, steps = [] } = run;
  const waits = steps.flatMap((step) => waitOf(step, awaiting) ?? []);
  const wait = mostUrgent([...awaiting, ...waits]);
  if (wait === 'review' || wait === 'budget' || wait === 'capability') return waitingRun(run, wait);
  if (state === 'paused') return pausedRun(run);
  // Comes before `retrying`, which is the state of a step while its ladder waits for another one.
  if (follows !== undefined) {
    return { ...condition('run', 'it works on the same failure'), title: 'Waiting for another run' };
  }
  const counts = countsOf(run);
  if ((counts.retrying ?? 0) > 0) return retryingRun(steps);
  if (wait !== undefined && !isBusy(run, counts)) return waitingRun(run, wait);
  return runningRun(run, counts);
}

/** A step whose items or rounds all wait is running, and does nothing. The list counts the items of all steps together. */
function isBusy({ awaiting = [], steps = [], item_counts = {} }: ConditionRun, counts: StateCounts): boolean {
  const active = ['ready', 'running'] as const;
  if (steps.length > 0)
    return steps.some((step) => sumOf({ [step.state]: 1 }, active) > 0 && waitOf(step, awaiting) === null);
  const begun = sumOf(counts, active);
  const areItemsWaiting = (item_counts.waiting ?? 0) > 0 && sumOf(item_counts, activeStates) === 0;
  return begun > 1 || (begun === 1 && !areItemsWaiting);
}

/** `mix: HTTP 500` for a single step; several are only named. */
function namesWithCause(
  steps: readonly ConditionStep[],
  causeOf: (step: ConditionStep) => string | undefined,
): string {
  const [first, ...others] = steps;
  const cause = first === undefined || others.length > 0 ? undefined : causeOf(first);
  const names = namesOf(steps.map(({ id }) => id));
  return cause === undefined ? names : `${names}: ${firstLine(cause)}`;
}

function retryingRun(steps: readonly ConditionStep[]): RunCondition {
  const retrying = steps.filter(({ state }) => state === 'retrying');
  return condition(
    'retrying',
    namesWithCause(retrying, ({ error }) => error?.message),
    retrying.map(({ id }) => id),
  );
}

function waitingRun(run: ConditionRun, wait: Awaiting): RunCondition {
  const { awaiting = [], steps = [] } = run;
  const blocked = steps.filter((step) => waitOf(step, awaiting) === wait);
  const ids = blocked.map(({ id }) => id);
  const [only] = blocked;
  if (only === undefined) return waitingChild(steps, wait);
  if (blocked.length === 1 && only.items !== undefined)
    return condition(wait, blockedItems(only, only.items), ids);
  // The question of a `review` step, or the budget of a key or label; the error of a refused step is in its review.
  return condition(
    wait,
    namesWithCause(blocked, ({ review, budget }) => (wait === 'review' ? readyTitle(review) : budget)),
    ids,
  );
}

/** A title with expressions is known to its review alone. */
function readyTitle(title: string | undefined): string | undefined {
  return title?.includes(delimiters.open) ? undefined : title;
}

/** No own step has the wait: a step of a child run has it. The list of runs has no steps. */
function waitingChild(steps: readonly ConditionStep[], wait: Awaiting): RunCondition {
  const parents = steps.filter(({ awaiting }) => awaiting === 'run').map(({ id }) => id);
  return condition(wait, parents.length === 0 ? '' : `in the child run of ${namesOf(parents)}`, parents);
}

function pausedRun(run: ConditionRun): RunCondition {
  const { running = 0, retrying = 0 } = countsOf(run);
  const { pause } = run;
  const calls = pause?.open_call_count ?? 0;
  const names = namesOf([...new Set(pause?.open_calls.map(({ step_id }) => step_id))]);
  const said = [
    ...(calls === 0 ? [] : [`${plural(calls, 'open call')} of ${names} will finish`]),
    // The list of runs does not know the open calls.
    ...(pause === undefined && running > 0 ? [`${plural(running, 'step')} begun, without new calls`] : []),
    ...(retrying === 0 ? [] : [`${plural(retrying, 'step')} will retry after the resume`]),
  ];
  return withActor(condition('paused', said.join('; ')), pause?.by);
}

function runningRun({ steps = [] }: ConditionRun, counts: StateCounts): RunCondition {
  const active = steps.filter(({ state }) => state === 'running').map(({ id }) => id);
  const { ended, all } = countEnded(counts);
  const done = all === 0 ? '' : `${ended} of ${plural(all, 'step')} done`;
  const detail = [namesOf(active), done].filter((part) => part !== '').join('; ');
  return condition('running', detail, active);
}

/** `Waiting for budget: 4 of 6 items of chapter` */
export function toSentence({ title, detail }: Pick<RunCondition, 'title' | 'detail'>): string {
  return detail === '' ? title : `${title}: ${detail}`;
}
