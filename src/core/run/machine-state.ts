/**
 * What the run machine remembers. It belongs to its driver: events change it in place. The M numbers are those of
 * machine.ts.
 */
import type { Failure, Json } from '../../contracts/primitives.ts';
import type { Awaiting } from '../../contracts/run.ts';
import type { RunPlan } from './plan.ts';

/** How a step without items, or an item, stands. */
export type UnitState =
  | 'pending'
  | 'running'
  /** It failed, and a ladder or its end is under way. */
  | 'escalating'
  | 'waiting'
  | 'succeeded'
  | 'failed'
  | 'unknown'
  | 'skipped'
  | 'cancelled';

/** A step with items is `running` from its first item to its last. */
export type MachineStepState = UnitState | 'deciding' | 'reused';

export interface UnitKey {
  /** Index in the plan. */
  readonly step: number;
  /** 0 = the step as a whole; items are 1, 2, … */
  readonly item: number;
}

/** The items of a step. */
export interface FanOut {
  /** Item 1 is the first. */
  readonly states: UnitState[];
  /** Items that have begun. */
  next: number;
  /** Those that take room. */
  running: number;
  /** Those that have begun and not ended. */
  open: number;
  failed: number;
  firstFailure: string | null;
  /** Too many failed: no other begins. */
  isStopping: boolean;
  /** Keys of those whose wait is over and that wait for room among the items. */
  readonly blocked: string[];
}

export interface UnitWait extends UnitKey {
  readonly wait: Wait;
}

/** How long the history of a run has become. none: it goes on; soft, hard: M6. */
export type HistoryPressure = 'none' | 'soft' | 'hard';

export interface MachineState {
  readonly plan: RunPlan;
  readonly successors: readonly (readonly number[])[];
  /** Dependencies that are not done, by step. */
  readonly unmet: number[];
  /** Dependencies that are done and succeeded; that failed. The others were skipped. */
  readonly good: number[];
  readonly bad: number[];
  readonly steps: MachineStepState[];
  readonly fans: Map<number, FanOut>;
  /** Steps whose time has come and of which something must be worked out first. */
  undecided: number[];
  /** Steps that may start, in order; those before `nextReady` have. */
  readonly ready: number[];
  nextReady: number;
  /** Steps of which an item may begin, in order. */
  readonly openFans: Set<number>;
  /** By `keyOf`. */
  readonly waits: Map<string, UnitWait>;
  /** Those of them that are over, in order. */
  readonly woken: Set<string>;
  /** Those whose ladder begins when the run goes on, by `keyOf`; they keep their room (M9). */
  readonly held: Map<string, UnitKey>;
  /** Waits for people. */
  reviews: number;
  /** Units that take room. */
  inFlight: number;
  /** Steps that are being decided. */
  deciding: number;
  escalating: number;
  isPaused: boolean;
  historyPressure: HistoryPressure;
  phase: 'running' | 'failing' | 'cancelling' | 'finished';
  error: Failure | null;
}

export function keyOf({ step, item }: UnitKey): string {
  return `${step}/${item}`;
}

export function createMachineState(plan: RunPlan): MachineState {
  const successors: number[][] = plan.steps.map(() => []);
  for (const [index, step] of plan.steps.entries()) {
    for (const dependency of step.dependencies) successors[dependency]?.push(index);
  }
  return {
    plan,
    successors,
    unmet: plan.steps.map(({ dependencies }) => dependencies.length),
    good: plan.steps.map(() => 0),
    bad: plan.steps.map(() => 0),
    steps: plan.steps.map(() => 'pending'),
    fans: new Map(),
    undecided: [],
    ready: [],
    nextReady: 0,
    openFans: new Set(),
    waits: new Map(),
    woken: new Set(),
    held: new Map(),
    reviews: 0,
    inFlight: 0,
    deciding: 0,
    escalating: 0,
    isPaused: false,
    historyPressure: 'none',
    phase: 'running',
    error: null,
  };
}

export function unitState(state: MachineState, { step, item }: UnitKey): MachineStepState {
  return item === 0
    ? (state.steps[step] ?? 'pending')
    : (state.fans.get(step)?.states[item - 1] ?? 'pending');
}

/** Keeps the count of ladders; what takes room is the caller's. */
export function setUnitState(state: MachineState, key: UnitKey, next: UnitState): void {
  const before = unitState(state, key);
  if (before === 'escalating') state.escalating -= 1;
  if (next === 'escalating') state.escalating += 1;
  if (key.item === 0) {
    state.steps[key.step] = next;
    return;
  }
  const fan = state.fans.get(key.step);
  if (fan !== undefined) fan.states[key.item - 1] = next;
}

/** @param by 1 when the unit begins to take room, -1 when it no longer does */
export function countInFlight(state: MachineState, key: UnitKey, by: 1 | -1): void {
  state.inFlight += by;
  const fan = fanOf(state, key);
  if (fan !== undefined) fan.running += by;
}

/** The fan-out that an item belongs to. */
export function fanOf(state: MachineState, { step, item }: UnitKey): FanOut | undefined {
  return item === 0 ? undefined : state.fans.get(step);
}

/** Waiting is state: what a step waits for without taking room, and what its driver needs to go on afterwards. */
export interface Wait {
  readonly awaiting: Awaiting;
  /** Unix time in ms when it is over at the latest; null = only when somebody says so. */
  readonly until: number | null;
  /** A ladder goes on afterwards. */
  readonly ladder?: true;
  /** Small; of the driver. */
  readonly ref: Json;
}
