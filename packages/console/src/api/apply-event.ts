/**
 * (run, events) → run: applies new events of the log to a run. Pure, so that the same log yields the run at any moment.
 * The end of a step is final; late events only correct its cost.
 */
import type { RunEvent, RunFrame } from '@capstan/core/contracts/event';
import type { Json } from '@capstan/core/contracts/primitives';
import type { Run, RunState, RunSummary } from '@capstan/core/contracts/run';
import type { Awaiting, RunStep, StepState } from '@capstan/core/contracts/run-step';
import { endedStepStates } from '@capstan/core/run/ended-steps';

type Data = Readonly<Record<string, Json>>;

const runStateAfter: Partial<Record<RunEvent['type'], RunState>> = {
  'run.queued': 'queued',
  'run.started': 'running',
  'run.paused': 'paused',
  'run.resumed': 'running',
  'run.cancelling': 'cancelling',
  'run.succeeded': 'succeeded',
  'run.failed': 'failed',
  'run.cancelled': 'cancelled',
};

const stepStateAfter: Partial<Record<RunEvent['type'], StepState>> = {
  'step.started': 'running',
  'step.routed': 'running',
  'step.cached': 'running',
  'step.retrying': 'retrying',
  'step.waiting': 'waiting',
  'step.escalated': 'running',
  'step.reviewed': 'running',
  'step.in_review': 'in_review',
  'step.succeeded': 'succeeded',
  'step.failed': 'failed',
  'step.skipped': 'skipped',
  'step.cancelled': 'cancelled',
  'step.reused': 'reused',
};

/** The ended states of steps, which include those of runs. */
export const endedStates: ReadonlySet<string> = endedStepStates;

function dataOf({ data }: RunEvent): Data {
  return typeof data === 'object' && data !== null && !Array.isArray(data) ? (data as Data) : {};
}

function textOf(data: Data, name: string): string | undefined {
  const value = data[name];
  return typeof value === 'string' ? value : undefined;
}

function costOf(data: Data): number {
  return typeof data.cost_usd === 'number' ? data.cost_usd : 0;
}

function applyToRun(run: Run, event: RunEvent): Run {
  const state = runStateAfter[event.type];
  const data = dataOf(event);
  if (event.type === 'run.budget_raised') {
    const ceiling = data.to;
    return { ...run, budget_ceiling_usd: typeof ceiling === 'number' ? ceiling : null };
  }
  if (state === undefined || endedStates.has(run.state)) return run;
  const { pause: _pause, ...before } = run;
  const changed: Run = { ...before, state };
  if (event.type === 'run.started') changed.started_at ??= event.at;
  if (endedStates.has(state)) changed.finished_at = event.at;
  if (data.error !== undefined && data.error !== null)
    changed.error = data.error as unknown as NonNullable<Run['error']>;
  return changed;
}

function applyToStep(step: RunStep, event: RunEvent): RunStep {
  const data = dataOf(event);
  const cost_usd = step.cost_usd + costOf(data);
  if (endedStates.has(step.state)) return cost_usd === step.cost_usd ? step : { ...step, cost_usd };
  const state = stepStateAfter[event.type];
  if (state === undefined) return step;
  const { awaiting: _, ...rest } = step;
  const changed: RunStep = { ...rest, state, cost_usd };
  if (state === 'waiting') changed.awaiting = (textOf(data, 'awaiting') ?? 'time') as Awaiting;
  if (state === 'running' || state === 'waiting') changed.started_at ??= event.at;
  if (event.type === 'step.routed') {
    changed.attempts = event.attempt ?? step.attempts + 1;
    const endpoint = textOf(data, 'endpoint');
    if (endpoint !== undefined) changed.endpoint = endpoint;
  }
  if (event.type === 'step.cached') {
    changed.attempts = event.attempt ?? step.attempts + 1;
    changed.cached = (step.cached ?? 0) + 1;
  }
  if (state === 'in_review') {
    const review = textOf(data, 'review_id');
    if (review !== undefined) changed.review_id = review;
  }
  if (state === 'reused') {
    const from = textOf(data, 'reused_from');
    if (from !== undefined) changed.reused_from = from;
  }
  if (endedStates.has(state)) changed.finished_at = event.at;
  if (state === 'succeeded') delete changed.error;
  else if (data.error !== undefined && data.error !== null) {
    changed.error = data.error as unknown as NonNullable<RunStep['error']>;
  }
  return changed;
}

/** A step with `repeat` has another round, which has not begun. */
function addRound(step: RunStep): RunStep {
  return { ...step, items: { ...step.items, pending: (step.items?.pending ?? 0) + 1 } };
}

const openItem = 'running';

/** For a step with `for_each`, when an item changes: counts the items by state. */
function applyToItems(known: RunStep, event: RunEvent, before: string | undefined): RunStep {
  const step = event.type === 'step.cached' ? { ...known, cached: (known.cached ?? 0) + 1 } : known;
  if (event.type === 'step.round') return dataOf(event).last === true ? step : addRound(step);
  const state = stepStateAfter[event.type];
  if (state === undefined) return step;
  const items: Record<string, number> = { ...step.items };
  const isNew = state === openItem || (state === 'waiting' && (items[openItem] ?? 0) === 0);
  const from = before ?? (isNew ? 'pending' : openItem);
  if (from === state) return step;
  if ((items[from] ?? 0) > 0) items[from] = (items[from] ?? 0) - 1;
  items[state] = (items[state] ?? 0) + 1;
  return { ...step, items, cost_usd: step.cost_usd + costOf(dataOf(event)) };
}

export interface RunMoment {
  readonly run: Run;
  /** The last state in an event, per step and item. */
  readonly items: ReadonlyMap<string, string>;
}

/** Events of other runs, and of unknown steps, change nothing. */
export function applyEvents({ run, items: known }: RunMoment, events: readonly RunEvent[]): RunMoment {
  const at = new Map(run.steps.map(({ id }, index) => [id, index]));
  const steps = [...run.steps];
  const items = new Map(known);
  let head = run;
  for (const event of events) {
    if (event.run_id !== run.run_id) continue;
    if (event.step_id === undefined) {
      head = applyToRun(head, event);
      continue;
    }
    const index = at.get(event.step_id);
    const step = index === undefined ? undefined : steps[index];
    if (index === undefined || step === undefined) continue;
    if (event.item === undefined) {
      const count = dataOf(event).items;
      const opened = typeof count === 'number' ? { ...step, items: { pending: count } } : step;
      steps[index] = applyToStep(opened, event);
    } else {
      const name = `${event.step_id} ${event.item}`;
      steps[index] = applyToItems(step, event, items.get(name));
      const state = stepStateAfter[event.type];
      if (state !== undefined) items.set(name, state);
    }
  }
  return { run: { ...head, steps }, items };
}

/** The run at its submission: no step has begun, nothing was spent. */
export function beginningOf(run: Run): RunMoment {
  const { finished_at: _end, error: _error, output: _output, awaiting: _wait, pause: _pause, ...head } = run;
  const steps = run.steps.map(({ id, capability, pipeline, wait, review, max_rounds }) => ({
    id,
    ...(capability === undefined ? {} : { capability }),
    ...(pipeline === undefined ? {} : { pipeline }),
    ...(wait === undefined ? {} : { wait }),
    ...(review === undefined ? {} : { review }),
    ...(max_rounds === undefined ? {} : { max_rounds }),
    state: 'pending' as const,
    attempts: 0,
    revision: 0,
    cost_usd: 0,
    started_at: null,
    finished_at: null,
  }));
  const started = {
    state: 'queued' as const,
    cost_usd: 0,
    reserved_usd: 0,
    started_at: null,
    finished_at: null,
  };
  return { run: { ...head, ...started, steps }, items: new Map() };
}

/** The ceiling before a later event changed it; the present one without such an event. */
function ceilingAt({ budget_ceiling_usd }: Run, later: readonly RunEvent[]): number | null {
  const change = later.find(({ type }) => type === 'run.budget_raised');
  if (change === undefined) return budget_ceiling_usd;
  const { from } = dataOf(change);
  return typeof from === 'number' ? from : null;
}

/** The run at a moment, from its log. Its cost is the cost of its steps up to then. */
export function momentOf(run: Run, events: readonly RunEvent[], at: string): Run {
  const until = Date.parse(at);
  const { run: then } = applyEvents(
    beginningOf(run),
    events.filter((event) => Date.parse(event.at) <= until),
  );
  const later = events.filter((event) => Date.parse(event.at) > until);
  return {
    ...then,
    budget_ceiling_usd: ceilingAt(run, later),
    cost_usd: then.steps.reduce((sum, { cost_usd }) => sum + cost_usd, 0),
  };
}

/**
 * The answer of a request, with the events that came meanwhile: the answer may have been read before them.
 * An ended step, and the items of a step, are left as the answer has them.
 */
export function applyMissed(run: Run, events: readonly RunEvent[]): Run {
  const ended = new Set(run.steps.filter(({ state }) => endedStates.has(state)).map(({ id }) => id));
  const missed = events.filter(
    ({ step_id, item }) => item === undefined && (step_id === undefined || !ended.has(step_id)),
  );
  const late = applyEvents({ run, items: new Map() }, missed).run;
  const items = new Map(run.steps.map((step) => [step.id, step.items]));
  const steps = late.steps.map((step) => {
    const known = items.get(step.id);
    return known === undefined ? step : { ...step, items: known };
  });
  return { ...late, steps };
}

/** The fields of a run in a frame; an absent `follows` or `stalled` means that there is none now. */
export function standingOf(frame: RunFrame) {
  const { state, cost_usd, reserved_usd, awaiting, follows, stalled, error } = frame;
  return { state, cost_usd, reserved_usd, awaiting, follows, stalled, error };
}

/** A row of the list of runs after a frame of any run. */
export function applyRunFrame(run: RunSummary, frame: RunFrame): RunSummary {
  return run.run_id === frame.run_id
    ? { ...run, ...standingOf(frame), step_counts: frame.steps, item_counts: frame.item_counts }
    : run;
}
