/**
 * When a step is due (M2 of the machine): each end is propagated to its dependants, once per edge, and each is judged
 * by its `run_if`. A skipped step counts as an end and is propagated in the same way.
 */
import { createMachineState, type MachineState } from './machine-state.ts';

/** How an end counts for the dependants of a step. */
export type Doneness = 'good' | 'bad' | 'skipped';

/** @returns steps that are skipped as a result, in the order of their skipping */
export function propagateEnd(state: MachineState, step: number, how: Doneness): number[] {
  const skipped: number[] = [];
  const ends: (readonly [number, Doneness])[] = [[step, how]];
  for (let at = 0; at < ends.length; at++) {
    const [ended, as] = ends[at] as readonly [number, Doneness];
    for (const successor of state.successors[ended] ?? []) {
      countDone(state, successor, as);
      if (state.steps[successor] !== 'pending') continue;
      switch (judge(state, successor)) {
        case 'ready':
          makeReady(state, successor);
          break;
        case 'skip':
          state.steps[successor] = 'skipped';
          skipped.push(successor);
          ends.push([successor, 'skipped']);
          break;
        case 'later':
          break;
      }
    }
  }
  return skipped;
}

export function countDone(state: MachineState, step: number, how: Doneness): void {
  state.unmet[step] = (state.unmet[step] ?? 0) - 1;
  if (how === 'good') state.good[step] = (state.good[step] ?? 0) + 1;
  if (how === 'bad') state.bad[step] = (state.bad[step] ?? 0) + 1;
}

/**
 * The first dependency that did not succeed breaks the default rule; the other rules need all dependencies to be done.
 */
function judge({ plan, unmet, good, bad }: MachineState, step: number): 'ready' | 'skip' | 'later' {
  const rule = plan.steps[step]?.run_if ?? 'all_succeeded';
  const done = (plan.steps[step]?.dependencies.length ?? 0) - (unmet[step] ?? 0);
  const isAllDone = unmet[step] === 0;
  if (rule === 'all_succeeded') {
    if ((good[step] ?? 0) < done) return 'skip';
    return isAllDone ? 'ready' : 'later';
  }
  if (!isAllDone) return 'later';
  switch (rule) {
    case 'any_succeeded':
      return (good[step] ?? 0) > 0 ? 'ready' : 'skip';
    case 'any_failed':
      return (bad[step] ?? 0) > 0 ? 'ready' : 'skip';
    case 'all_done':
      return 'ready';
  }
}

export function makeReady(state: MachineState, step: number): void {
  if (state.plan.steps[step]?.decides === true) state.undecided.push(step);
  else state.ready.push(step);
}

/**
 * A run before its first step: steps without dependencies are ready, and dependants of reused results are judged.
 * @returns also the steps that are skipped from the beginning
 */
export function openRun(plan: MachineState['plan']): { state: MachineState; skipped: number[] } {
  const state = createMachineState(plan);
  const reused = plan.reused ?? [];
  for (const step of reused) state.steps[step] = 'reused';
  for (const [step, { dependencies }] of plan.steps.entries()) {
    if (state.steps[step] === 'pending' && dependencies.length === 0) makeReady(state, step);
  }
  const skipped = reused.flatMap((step) => propagateEnd(state, step, 'good'));
  state.ready.sort((a, b) => a - b);
  state.undecided.sort((a, b) => a - b);
  return { state, skipped };
}
