/**
 * A run between two histories: what its machine knows when nothing is under way, small and plain JSON. What follows
 * from the plan is worked out again, so ten thousand steps take a letter each, and less in a row.
 */
import { type BegunRun, continueRun } from './machine.ts';
import type { RunPlan } from './plan.ts';
import { countDone, makeReady } from './readiness.ts';
import {
  createRunState,
  type FanOut,
  keyOf,
  type MachineStepState,
  type RunState,
  type UnitKey,
  type WaitingUnit,
} from './run-state.ts';
import { keepWait } from './waits.ts';

interface CarriedFanOut extends Pick<FanOut, 'next' | 'failed' | 'firstFailure' | 'isStopping'> {
  readonly step: number;
  /** As `steps`. */
  readonly items: string;
}

export interface CarriedRun {
  /** States in order, a letter each; a number after it says how often. */
  readonly steps: string;
  readonly fans: readonly CarriedFanOut[];
  readonly waits: readonly WaitingUnit[];
  readonly woken: readonly UnitKey[];
  readonly isPaused: boolean;
}

const letters: Record<MachineStepState, string> = {
  pending: 'p',
  deciding: 'd',
  running: 'r',
  escalating: 'e',
  waiting: 'w',
  succeeded: 's',
  failed: 'f',
  unknown: 'u',
  skipped: 'k',
  cancelled: 'c',
  reused: 'o',
};

const states = new Map(Object.entries(letters).map(([state, letter]) => [letter, state as MachineStepState]));

function pack(list: readonly MachineStepState[]): string {
  return list
    .map((state) => letters[state])
    .join('')
    .replace(/(.)\1+/g, (row, letter) => `${letter}${row.length}`);
}

function unpack(text: string): MachineStepState[] {
  return [...text.matchAll(/([a-z])(\d*)/g)].flatMap(([, letter = '', count]) =>
    Array.from({ length: count === '' ? 1 : Number(count) }, () => states.get(letter) ?? 'pending'),
  );
}

/** Of a run of which nothing is under way. */
export function carryRun(state: RunState): CarriedRun {
  return {
    steps: pack(state.steps),
    fans: [...state.fans]
      .filter(([step]) => state.steps[step] === 'running' || state.steps[step] === 'pending')
      .map(([step, { states: items, next, failed, firstFailure, isStopping }]) => ({
        step,
        items: pack(items),
        next,
        failed,
        firstFailure,
        isStopping,
      })),
    waits: [...state.waits.values()],
    woken: [...state.woken, ...[...state.fans.values()].flatMap(({ blocked }) => blocked)].flatMap((name) => {
      const unit = state.waits.get(name);
      return unit === undefined ? [] : [{ step: unit.step, item: unit.item }];
    }),
    isPaused: state.isPaused,
  };
}

/** Goes on where it was: those that wait are listened to again. */
export function resumeRun(plan: RunPlan, carried: CarriedRun): BegunRun {
  const state = createRunState(plan);
  for (const [step, stepState] of unpack(carried.steps).entries()) state.steps[step] = stepState;
  for (const fan of carried.fans) reopen(state, fan);
  countDependencies(state);
  for (const step of state.steps.keys()) if (isReady(state, step)) makeReady(state, step);
  for (const wait of carried.waits) keepWait(state, wait);
  for (const key of carried.woken) state.woken.add(keyOf(key));
  state.isPaused = carried.isPaused;
  const going = continueRun(state);
  const listening = [...state.waits.values()].map((unit) => ({ type: 'listen' as const, ...unit }));
  return { state, commands: [...listening, ...going] };
}

function reopen(state: RunState, { step, items, ...rest }: CarriedFanOut): void {
  const list = unpack(items) as FanOut['states'][number][];
  const open = list.filter((item) => item === 'waiting').length;
  state.fans.set(step, { ...rest, states: list, running: 0, open, blocked: [] });
  state.steps[step] = 'running';
  if (!rest.isStopping && rest.next < list.length) state.openFans.add(step);
}

function countDependencies(state: RunState): void {
  for (const [step, stepState] of state.steps.entries()) {
    const how = howDone[stepState];
    if (how === undefined) continue;
    for (const successor of state.successors[step] ?? []) countDone(state, successor, how);
  }
}

const howDone: Partial<Record<MachineStepState, 'good' | 'bad' | 'skipped'>> = {
  succeeded: 'good',
  reused: 'good',
  failed: 'bad',
  unknown: 'bad',
  skipped: 'skipped',
};

/** Of those that are pending: the others were judged when their last dependency ended. */
function isReady({ steps, unmet, fans }: RunState, step: number): boolean {
  return steps[step] === 'pending' && unmet[step] === 0 && !fans.has(step);
}
