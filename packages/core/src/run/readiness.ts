/**
 * When a step is due (M2 of the machine): each end is propagated to its dependants, once per edge, and each is judged
 * by its `run_if`. A skipped step counts as an end and is propagated in the same way.
 */
import type { RunIf } from '../contracts/pipeline.ts';
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

function judge({ plan, unmet, good, bad }: MachineState, step: number): 'ready' | 'skip' | 'later' {
  const { dependencies = [], run_if } = plan.steps[step] ?? {};
  const ends = { all: dependencies.length, good: good[step] ?? 0, bad: bad[step] ?? 0 };
  return judgeRunIf(run_if, { ...ends, unmet: unmet[step] ?? 0 });
}

/** The dependencies of a step by their ends. The other finished ones were skipped. */
interface DependencyEnds {
  readonly all: number;
  readonly unmet: number;
  readonly good: number;
  readonly bad: number;
}

/**
 * The first dependency that did not succeed breaks the default rule; the other rules need all dependencies to be done.
 */
export function judgeRunIf(
  rule: RunIf = 'all_succeeded',
  { all, unmet, good, bad }: DependencyEnds,
): 'ready' | 'skip' | 'later' {
  if (rule === 'all_succeeded') {
    if (good < all - unmet) return 'skip';
    return unmet === 0 ? 'ready' : 'later';
  }
  if (unmet > 0) return 'later';
  switch (rule) {
    case 'any_succeeded':
      return good > 0 ? 'ready' : 'skip';
    case 'any_failed':
      return bad > 0 ? 'ready' : 'skip';
    case 'all_done':
      return 'ready';
  }
}

export function makeReady(state: MachineState, step: number): void {
  if (state.plan.steps[step]?.decides === true) state.undecided.push(step);
  else state.ready.push(step);
}

/**
 * A run before its first step: steps without dependencies are ready, and dependants of kept ends are judged.
 * @returns also the steps that are skipped from the beginning
 */
export function openRun(plan: MachineState['plan']): { state: MachineState; skipped: number[] } {
  const state = createMachineState(plan);
  const { reused = [], skipped: left = [] } = plan;
  for (const step of reused) state.steps[step] = 'reused';
  for (const step of left) state.steps[step] = 'skipped';
  for (const [step, { dependencies }] of plan.steps.entries()) {
    if (state.steps[step] === 'pending' && dependencies.length === 0) makeReady(state, step);
  }
  const skipped = [
    ...reused.flatMap((step) => propagateEnd(state, step, 'good')),
    ...left.flatMap((step) => propagateEnd(state, step, 'skipped')),
  ];
  state.ready.sort((a, b) => a - b);
  state.undecided.sort((a, b) => a - b);
  return { state, skipped };
}
