/**
 * The run as a state machine: which step may start, and when the run is over. Pure and free of promises, so
 * that replaying a thousand steps costs what their edges cost: every edge is looked at once.
 *
 * Guarantees: a step starts once, after all its dependencies succeeded, as soon as there is room; after a failure
 * or a cancel nothing new starts, what runs may end and what waits for a person is given up; a step that a person
 * waits for takes no room; `finish` comes exactly once, when nothing runs and nothing waits.
 * The state belongs to its driver: `applyEvent` changes it in place.
 */
import type { Failure } from '../../contracts/primitives.ts';
import type { RunPlan } from './plan.ts';

export type MachineStepState =
  | 'pending'
  | 'running'
  /** It failed, and a ladder or its end is under way. */
  | 'escalating'
  | 'in_review'
  | 'succeeded'
  | 'failed'
  | 'unknown'
  | 'skipped'
  | 'cancelled';

export interface RunState {
  readonly plan: RunPlan;
  readonly successors: readonly (readonly number[])[];
  /** Dependencies that have not succeeded yet, by step. */
  readonly unmet: number[];
  readonly steps: MachineStepState[];
  /** Steps that may start, in order; `taken` of them have. */
  readonly ready: number[];
  taken: number;
  inFlight: number;
  /** Steps in review. */
  inReview: number;
  /** Those of them whose review is over and that wait for room, in order. */
  readonly reviewed: Set<number>;
  phase: 'running' | 'failing' | 'cancelling' | 'finished';
  error: Failure | null;
}

export type RunMachineEvent =
  | {
      readonly type: 'step_ended';
      readonly step: number;
      readonly state: 'succeeded' | 'failed' | 'unknown' | 'skipped' | 'cancelled';
      readonly error?: Failure;
    }
  /** It failed in a way that a ladder may cure. */
  | { readonly type: 'step_escalated'; readonly step: number }
  /** The ladder ended and a person is asked. */
  | { readonly type: 'step_in_review'; readonly step: number }
  /** The person decided, or the time for it is over. */
  | { readonly type: 'step_reviewed'; readonly step: number }
  | { readonly type: 'cancel_requested' }
  | { readonly type: 'timed_out'; readonly error: Failure };

export type RunOutcome = 'succeeded' | 'failed' | 'cancelled';

export type RunCommand =
  | { readonly type: 'execute'; readonly step: number }
  /** Go on with its ladder. */
  | { readonly type: 'escalate'; readonly step: number }
  | { readonly type: 'await_review'; readonly step: number }
  /** End it as it is: nobody waits for its correction any more. */
  | { readonly type: 'give_up'; readonly step: number }
  | { readonly type: 'cancel_running' }
  | { readonly type: 'cancel_escalations' }
  | { readonly type: 'finish'; readonly outcome: RunOutcome; readonly error: Failure | null };

export const startRun = (plan: RunPlan): { state: RunState; commands: RunCommand[] } => {
  const successors: number[][] = plan.steps.map(() => []);
  for (const [index, step] of plan.steps.entries()) {
    for (const dependency of step.dependencies) successors[dependency]?.push(index);
  }
  const unmet = plan.steps.map(({ dependencies }) => dependencies.length);
  const state: RunState = {
    plan,
    successors,
    unmet,
    steps: plan.steps.map(() => 'pending'),
    ready: unmet.flatMap((count, index) => (count === 0 ? [index] : [])),
    taken: 0,
    inFlight: 0,
    inReview: 0,
    reviewed: new Set(),
    phase: 'running',
    error: null,
  };
  return { state, commands: advance(state) };
};

export const applyEvent = (state: RunState, event: RunMachineEvent): RunCommand[] => {
  if (state.phase === 'finished') return [];
  switch (event.type) {
    case 'step_ended':
      return [...endStep(state, event), ...advance(state)];
    case 'step_escalated':
      if (state.steps[event.step] !== 'running') return [];
      state.steps[event.step] = 'escalating';
      return [{ type: state.phase === 'running' ? 'escalate' : 'give_up', step: event.step }];
    case 'step_in_review':
      if (state.steps[event.step] !== 'escalating') return [];
      if (state.phase !== 'running') return [{ type: 'give_up', step: event.step }];
      state.steps[event.step] = 'in_review';
      state.inFlight -= 1;
      state.inReview += 1;
      return [{ type: 'await_review', step: event.step }, ...advance(state)];
    case 'step_reviewed':
      if (state.steps[event.step] !== 'in_review') return [];
      state.reviewed.add(event.step);
      return advance(state);
    case 'cancel_requested':
      if (state.phase === 'cancelling') return [];
      state.phase = 'cancelling';
      return [{ type: 'cancel_running' }, ...giveUpReviews(state), ...advance(state)];
    case 'timed_out':
      if (state.phase === 'cancelling') return [];
      state.phase = 'failing';
      state.error ??= event.error;
      return [{ type: 'cancel_running' }, ...giveUpReviews(state), ...advance(state)];
  }
};

const endStep = (state: RunState, event: RunMachineEvent & { type: 'step_ended' }): RunCommand[] => {
  const before = state.steps[event.step];
  if (before !== 'running' && before !== 'escalating') return [];
  state.steps[event.step] = event.state;
  state.inFlight -= 1;
  if (event.state === 'succeeded') {
    for (const successor of state.successors[event.step] ?? []) {
      const left = (state.unmet[successor] ?? 0) - 1;
      state.unmet[successor] = left;
      if (left === 0) state.ready.push(successor);
    }
  } else if (event.state === 'skipped') {
    skipSuccessors(state, event.step);
  } else if (state.phase === 'running') {
    state.phase = 'failing';
    state.error = {
      code: 'step_failed',
      message: `step ${state.plan.steps[event.step]?.id}: ${event.error?.message ?? event.state}`,
      details: { step_id: state.plan.steps[event.step]?.id ?? '', code: event.error?.code ?? event.state },
    };
    const stop: RunCommand[] = state.steps.includes('escalating') ? [{ type: 'cancel_escalations' }] : [];
    return [...stop, ...giveUpReviews(state)];
  }
  return [];
};

/** All that waits for a skipped step, however far, will not happen: one of its dependencies never succeeds. */
const skipSuccessors = (state: RunState, step: number): void => {
  const todo = [step];
  for (let at = 0; at < todo.length; at++) {
    for (const successor of state.successors[todo[at] as number] ?? []) {
      if (state.steps[successor] !== 'pending') continue;
      state.steps[successor] = 'skipped';
      todo.push(successor);
    }
  }
};

const giveUpReviews = (state: RunState): RunCommand[] => {
  if (state.inReview === 0) return [];
  const waiting = state.steps.flatMap((step, index) => (step === 'in_review' ? [index] : []));
  for (const step of waiting) state.steps[step] = 'escalating';
  state.inFlight += waiting.length;
  state.inReview = 0;
  state.reviewed.clear();
  return waiting.map((step) => ({ type: 'give_up', step }));
};

const advance = (state: RunState): RunCommand[] => {
  const commands: RunCommand[] = [];
  while (state.phase === 'running' && state.inFlight < state.plan.max_in_flight) {
    const next = takeNext(state);
    if (next === null) break;
    state.inFlight += 1;
    commands.push(next);
  }
  if (state.inFlight === 0 && state.inReview === 0) commands.push(finish(state));
  return commands;
};

/** People first: who decided waits for the answer. */
const takeNext = (state: RunState): RunCommand | null => {
  for (const step of state.reviewed) {
    state.reviewed.delete(step);
    state.steps[step] = 'escalating';
    state.inReview -= 1;
    return { type: 'escalate', step };
  }
  const step = state.ready[state.taken];
  if (step === undefined) return null;
  state.taken += 1;
  state.steps[step] = 'running';
  return { type: 'execute', step };
};

const finish = (state: RunState): RunCommand => {
  const outcome: RunOutcome =
    state.phase === 'cancelling' ? 'cancelled' : state.phase === 'failing' ? 'failed' : 'succeeded';
  state.phase = 'finished';
  for (const [index, step] of state.steps.entries()) {
    if (step === 'pending') state.steps[index] = outcome === 'cancelled' ? 'cancelled' : 'skipped';
  }
  return { type: 'finish', outcome, error: state.error };
};
