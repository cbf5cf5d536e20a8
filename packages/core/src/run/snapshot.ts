/**
 * A run between two histories: the state of its machine when nothing is in flight (M6), small and plain JSON.
 * Everything that follows from the plan is computed again, so ten thousand steps take a letter each, and less for
 * repeats.
 */
import { mostItems } from '../contracts/limits.ts';
import { isLost, isWon } from '../graph/races.ts';
import {
  allow,
  anything,
  count,
  fields,
  flag,
  indexBelow,
  listOf,
  nullable,
  number,
  optional,
  recordOf,
  type Shape,
  text,
} from '../received/shape.ts';
import { type BegunRun, continueRun } from './machine.ts';
import {
  childOf,
  createMachineState,
  type FanOut,
  keyOf,
  type MachineState,
  type MachineStepState,
  packStates,
  type UnitKey,
  type UnitState,
  type UnitWait,
  unpackStates,
  type Wait,
} from './machine-state.ts';
import type { RunPlan } from './plan.ts';
import { countDone, judge, makeReady } from './readiness.ts';
import { hasRestingChild, keepWait } from './waits.ts';

interface FanOutSnapshot
  extends Pick<FanOut, 'next' | 'failed' | 'firstFailure' | 'isStopping'>,
    Partial<Pick<FanOut, 'good' | 'missed'>> {
  readonly step: number;
  /** States in order, in the format of `steps`. */
  readonly items: string;
}

export interface RunSnapshot {
  /** States in order, as `packStates` writes them. */
  readonly steps: string;
  readonly fans: readonly FanOutSnapshot[];
  readonly waits: readonly UnitWait[];
  readonly woken: readonly UnitKey[];
  /** Waiting units whose child run rests. Absent: none. */
  readonly resting?: readonly UnitKey[];
  readonly isAtRest?: true;
  readonly isPaused: boolean;
}

/** The number of packed states, or infinite where the text is none of `packStates`. */
function countPacked(list: string): number {
  if (!/^(?:[a-z]\d{0,6})*$/.test(list)) return Number.POSITIVE_INFINITY;
  return [...list.matchAll(/[a-z](\d*)/g)].reduce(
    (total, [, times]) => total + (times === '' ? 1 : Number(times)),
    0,
  );
}

const waitShape = fields<Wait>({
  awaiting: text,
  until: nullable(number),
  ladder: optional(flag),
  ref: nullable(recordOf(anything)),
});

/** The shape of a snapshot of a run with this many steps. */
export function snapshotShape(steps: number): Shape {
  const step = indexBelow(steps);
  const states = (allowed: string, isAllowed: (total: number) => boolean): Shape =>
    allow(allowed, (value) => typeof value === 'string' && isAllowed(countPacked(value)));
  const fan = fields<FanOutSnapshot>({
    step,
    items: states(`the states of at most ${mostItems} items`, (total) => total <= mostItems),
    next: count,
    failed: count,
    firstFailure: nullable(text),
    isStopping: flag,
    good: optional(count),
    missed: optional(count),
  });
  return fields<RunSnapshot>({
    steps: states(`the states of ${steps} steps`, (total) => total === steps),
    fans: listOf(fan),
    waits: listOf(fields<UnitWait>({ step, item: count, wait: waitShape })),
    woken: listOf(fields<UnitKey>({ step, item: count })),
    resting: optional(listOf(fields<UnitKey>({ step, item: count }))),
    isAtRest: optional(flag),
    isPaused: flag,
  });
}

/** @param state of a run with nothing in flight */
export function takeSnapshot(state: MachineState): RunSnapshot {
  return {
    steps: packStates(state.steps),
    fans: [...state.fans]
      .filter(([step]) => state.steps[step] === 'running' || state.steps[step] === 'pending')
      .map(([step, { states: items, next, failed, firstFailure, isStopping, good, missed }]) => ({
        step,
        items: packStates(items),
        next,
        failed,
        firstFailure,
        isStopping,
        ...(state.plan.steps[step]?.each?.enough === undefined ? {} : { good, missed }),
      })),
    waits: [...state.waits.values()],
    woken: [...state.woken, ...[...state.fans.values()].flatMap(({ blocked }) => blocked)].flatMap((name) => {
      const unit = state.waits.get(name);
      return unit === undefined ? [] : [toKey(unit)];
    }),
    ...(state.restingWaits === 0
      ? {}
      : { resting: [...state.waits.values()].filter((unit) => hasRestingChild(state, unit)).map(toKey) }),
    ...(state.isAtRest ? { isAtRest: true } : {}),
    isPaused: state.isPaused,
  };
}

function toKey({ step, item }: UnitKey): UnitKey {
  return { step, item };
}

/** Continues where the run was, and listens to waiting units again. */
export function restoreRun(plan: RunPlan, snapshot: RunSnapshot): BegunRun {
  const state = createMachineState(plan);
  for (const [step, stepState] of unpackStates(snapshot.steps).entries()) state.steps[step] = stepState;
  for (const fan of snapshot.fans) reopen(state, fan);
  countDependencies(state);
  for (const step of state.steps.keys()) if (isReady(state, step)) makeReady(state, step);
  for (const [step, race] of state.races) {
    race.isDecided = isWon(race) || isLost(race) || state.steps[step] !== 'pending';
  }
  const resting = new Set(snapshot.resting?.map(keyOf));
  for (const unit of snapshot.waits) {
    const child = childOf(unit.wait);
    if (child !== undefined && resting.has(keyOf(unit))) state.resting.set(keyOf(unit), child);
    keepWait(state, unit);
  }
  state.isAtRest = snapshot.isAtRest === true;
  for (const key of snapshot.woken) state.woken.add(keyOf(key));
  state.isPaused = snapshot.isPaused;
  const going = continueRun(state);
  const listening = [...state.waits.values()].map((unit) => ({ type: 'listen' as const, ...unit }));
  return { state, commands: [...listening, ...going] };
}

function reopen(state: MachineState, { step, items, ...rest }: FanOutSnapshot): void {
  const list = unpackStates(items) as UnitState[];
  const open = list.filter((item) => item === 'waiting').length;
  const counts = { judging: 0, good: 0, missed: 0, calledOff: null };
  state.fans.set(step, { states: list, running: 0, inLine: 0, open, blocked: [], ...counts, ...rest });
  state.steps[step] = 'running';
  if (!rest.isStopping && rest.next < list.length) state.openFans.add(step);
}

function countDependencies(state: MachineState): void {
  for (const [step, stepState] of state.steps.entries()) {
    const how = howDone[stepState];
    if (how === undefined) continue;
    for (const successor of state.successors[step] ?? []) countDone(state, successor, { ended: step, how });
  }
}

const howDone: Partial<Record<MachineStepState, 'good' | 'bad' | 'skipped'>> = {
  succeeded: 'good',
  reused: 'good',
  failed: 'bad',
  unknown: 'bad',
  skipped: 'skipped',
};

/** Whether a step is due and has not begun: the others were judged when their last dependency ended. */
function isReady(state: MachineState, step: number): boolean {
  const { steps, unmet, fans, races } = state;
  if (steps[step] !== 'pending' || fans.has(step)) return false;
  return races.has(step) ? judge(state, step) === 'ready' : unmet[step] === 0;
}
