/**
 * When a step is due (M2 of the machine): each end is propagated to its dependants, once per edge, and each is judged
 * by its `run_if`. A skipped step counts as an end and is propagated in the same way.
 */
import type { RunIf } from '../contracts/pipeline.ts';
import { findRaceRegion, isLost, isWon, type RaceState } from '../graph/races.ts';
import { createMachineState, type MachineState, type MachineStepState } from './machine-state.ts';

/** How an end counts for the dependants of a step. */
export type Doneness = 'good' | 'bad' | 'skipped';

/** What follows from an end, in the order of its happening. */
export interface Consequences {
  /** Steps that are skipped. */
  readonly skipped: number[];
  /** Steps whose race is decided now; those that are still pending have lost theirs. */
  readonly decided: number[];
}

export function propagateEnd(state: MachineState, step: number, how: Doneness): Consequences {
  const skipped: number[] = [];
  const decided: number[] = [];
  const ends: (readonly [number, Doneness])[] = [[step, how]];
  for (let at = 0; at < ends.length; at++) {
    const [ended, as] = ends[at] as readonly [number, Doneness];
    for (const successor of state.successors[ended] ?? []) {
      countDone(state, successor, { ended, how: as });
      if (state.steps[successor] !== 'pending') continue;
      if (settleSuccessor(state, successor, decided)) {
        skipped.push(successor);
        ends.push([successor, 'skipped']);
      }
    }
  }
  return { skipped, decided };
}

/** @returns whether it is skipped */
function settleSuccessor(state: MachineState, step: number, decided: number[]): boolean {
  const race = state.races.get(step);
  const due = judge(state, step);
  const isLate = race?.isDecided === true; // it is ready, or waits for what takes no part
  if (race !== undefined && !isLate && (due === 'skip' || isLost(race) || isWon(race))) {
    race.isDecided = true;
    decided.push(step);
  }
  if (due === 'skip') state.steps[step] = 'skipped';
  if (due === 'ready' && !state.due.has(step)) makeReady(state, step);
  return due === 'skip';
}

interface EndOfDependency {
  readonly ended: number;
  readonly how: Doneness;
}

export function countDone(state: MachineState, step: number, { ended, how }: EndOfDependency): void {
  state.unmet[step] = (state.unmet[step] ?? 0) - 1;
  if (how === 'good') state.good[step] = (state.good[step] ?? 0) + 1;
  if (how === 'bad') state.bad[step] = (state.bad[step] ?? 0) + 1;
  const race = state.races.get(step);
  if (race?.of.has(ended) !== true) return;
  race.open -= 1;
  if (how === 'good') race.good += 1;
}

type Due = 'ready' | 'skip' | 'later';

/**
 * Steps that a race step mentions and that take no part in its race must have succeeded. A race that no step has failed
 * in was skipped with all of its steps.
 */
function judgeRace(state: MachineState, step: number, race: RaceState): Due {
  const { dependencies = [] } = state.plan.steps[step] ?? {};
  const others = dependencies.length - race.of.size;
  const unmet = (state.unmet[step] ?? 0) - race.open;
  if ((state.good[step] ?? 0) - race.good < others - unmet) return 'skip';
  if (isLost(race)) return findFirstFailure(state, step) === null ? 'skip' : 'later';
  return isWon(race) && unmet === 0 ? 'ready' : 'later';
}

/** The steps that only the race of a step needs. */
export function regionOf({ plan, successors }: MachineState, step: number): readonly number[] {
  const { race } = plan.steps[step] ?? {};
  if (race === undefined) return [];
  const dependenciesOf = (index: number) => plan.steps[index]?.dependencies ?? [];
  return findRaceRegion({ successors, dependenciesOf }, step, race);
}

/** The first step of a race, or of what only it needs, that has failed. */
export function findFirstFailure(state: MachineState, step: number): number | null {
  const { of = [] } = state.plan.steps[step]?.race ?? {};
  const parts = [...new Set([...of, ...regionOf(state, step)])];
  return parts.find((one) => failedStates.has(state.steps[one] ?? 'pending')) ?? null;
}

const failedStates: ReadonlySet<MachineStepState> = new Set(['failed', 'unknown']);

/** Whether a step is due, as far as its dependencies go. */
export function judge(state: MachineState, step: number): Due {
  const race = state.races.get(step);
  if (race !== undefined) return judgeRace(state, step, race);
  const { plan, unmet, good, bad } = state;
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
  if (state.races.has(step)) state.due.add(step);
  if (state.plan.steps[step]?.decides === true) state.undecided.push(step);
  else state.ready.push(step);
}

/**
 * A run before its first step: steps without dependencies are ready, and dependants of kept ends are judged.
 * @returns also the steps that are skipped from the beginning
 */
export function openRun(plan: MachineState['plan']): { readonly state: MachineState } & Consequences {
  const state = createMachineState(plan);
  const { reused = [], skipped: left = [] } = plan;
  for (const step of reused) state.steps[step] = 'reused';
  for (const step of left) state.steps[step] = 'skipped';
  for (const [step, { dependencies }] of plan.steps.entries()) {
    if (state.steps[step] === 'pending' && dependencies.length === 0) makeReady(state, step);
  }
  const ends = [
    ...reused.map((step) => propagateEnd(state, step, 'good')),
    ...left.map((step) => propagateEnd(state, step, 'skipped')),
  ];
  state.ready.sort((a, b) => a - b);
  state.undecided.sort((a, b) => a - b);
  const kept = [...reused, ...left].filter((step) => state.races.has(step));
  return {
    state,
    skipped: ends.flatMap(({ skipped }) => skipped),
    decided: [...kept, ...ends.flatMap(({ decided }) => decided)],
  };
}
