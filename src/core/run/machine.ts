/**
 * The run as a state machine: which step may start, and when the run is over. Pure and free of promises, so
 * that replaying a thousand steps costs what their edges cost: every edge is looked at once.
 *
 * Guarantees: a step starts once, after all its dependencies succeeded, as soon as there is room; after a failure
 * or a cancel nothing new starts and what runs may end; `finish` comes exactly once, when nothing runs.
 * The state belongs to its driver: `applyEvent` changes it in place.
 */
import type { Failure } from '../../contracts/primitives.ts';
import type { RunPlan } from './plan.ts';

export type MachineStepState =
  | 'pending'
  | 'running'
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
  phase: 'running' | 'failing' | 'cancelling' | 'finished';
  error: Failure | null;
}

export type RunMachineEvent =
  | {
      readonly type: 'step_ended';
      readonly step: number;
      readonly state: 'succeeded' | 'failed' | 'unknown' | 'cancelled';
      readonly error?: Failure;
    }
  | { readonly type: 'cancel_requested' }
  | { readonly type: 'timed_out'; readonly error: Failure };

export type RunOutcome = 'succeeded' | 'failed' | 'cancelled';

export type RunCommand =
  | { readonly type: 'execute'; readonly step: number }
  | { readonly type: 'cancel_running' }
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
    phase: 'running',
    error: null,
  };
  return { state, commands: advance(state) };
};

export const applyEvent = (state: RunState, event: RunMachineEvent): RunCommand[] => {
  if (state.phase === 'finished') return [];
  switch (event.type) {
    case 'step_ended':
      endStep(state, event);
      return advance(state);
    case 'cancel_requested':
      if (state.phase === 'cancelling') return [];
      state.phase = 'cancelling';
      return [{ type: 'cancel_running' }, ...advance(state)];
    case 'timed_out':
      if (state.phase === 'cancelling') return [];
      state.phase = 'failing';
      state.error ??= event.error;
      return [{ type: 'cancel_running' }, ...advance(state)];
  }
};

const endStep = (state: RunState, event: RunMachineEvent & { type: 'step_ended' }): void => {
  if (state.steps[event.step] !== 'running') return;
  state.steps[event.step] = event.state;
  state.inFlight -= 1;
  if (event.state === 'succeeded') {
    for (const successor of state.successors[event.step] ?? []) {
      const left = (state.unmet[successor] ?? 0) - 1;
      state.unmet[successor] = left;
      if (left === 0) state.ready.push(successor);
    }
  } else if (state.phase === 'running') {
    state.phase = 'failing';
    state.error = {
      code: 'step_failed',
      message: `step ${state.plan.steps[event.step]?.id}: ${event.error?.message ?? event.state}`,
      details: { step_id: state.plan.steps[event.step]?.id ?? '', code: event.error?.code ?? event.state },
    };
  }
};

const advance = (state: RunState): RunCommand[] => {
  const commands: RunCommand[] = [];
  while (
    state.phase === 'running' &&
    state.taken < state.ready.length &&
    state.inFlight < state.plan.max_in_flight
  ) {
    const step = state.ready[state.taken] as number;
    state.taken += 1;
    state.steps[step] = 'running';
    state.inFlight += 1;
    commands.push({ type: 'execute', step });
  }
  if (state.inFlight === 0) commands.push(finish(state));
  return commands;
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
