/**
 * The state of the run machine. Its driver owns it: events change it in place. The M numbers are those of machine.ts.
 */
import type { Failure, Json } from '../contracts/primitives.ts';
import type { Awaiting } from '../contracts/run-step.ts';
import { openRace, type RaceState, successorsOf } from '../graph/races.ts';
import type { RunPlan } from './plan.ts';

/** The state of a step without items, or of an item. */
export type UnitState =
  | 'pending'
  | 'running'
  /** It failed, and its ladder or its end is in progress. */
  | 'escalating'
  | 'waiting'
  | 'succeeded'
  | 'failed'
  | 'unknown'
  | 'skipped'
  | 'cancelled'
  /** Its result was taken from an earlier run. */
  | 'reused';

/** A step with items is `running` from its first item to its last. */
export type MachineStepState = UnitState | 'deciding';

export interface UnitKey {
  /** Index in the plan. */
  readonly step: number;
  /** 0 = the step as a whole; items are 1, 2, … */
  readonly item: number;
}

/** The items of a step, or its rounds, of which there is one more each time that it is repeated. */
export interface FanOut {
  /** Item 1 is the first. */
  readonly states: UnitState[];
  /** Items from the first on that have begun or are kept. */
  next: number;
  /** Items in flight. */
  running: number;
  /** Items that wait for a free slot (M10). */
  inLine: number;
  /** Items that have begun and not ended. */
  open: number;
  failed: number;
  firstFailure: string | null;
  /** Too many failed, or enough count: no further item begins. */
  isStopping: boolean;
  /** The round whose judgement is in progress; 0 = none. */
  judging: number;
  /** Items whose answer counts, and those that have ended without one. */
  good: number;
  missed: number;
  /** Why its other items are no longer needed; null: they are. */
  calledOff: Failure | null;
  /** Keys of items whose wait is over and that wait for room among the items. */
  readonly blocked: string[];
}

export interface UnitWait extends UnitKey {
  readonly wait: Wait;
}

/** A child run begins to rest, or ends its rest: it waits for people alone (M13). */
export interface ChildRest extends UnitKey {
  /** Id of the child run. */
  readonly child: string;
  readonly rests: boolean;
}

/** The pressure from the length of a run's history. none: it continues; soft, hard: M6. */
export type HistoryPressure = 'none' | 'soft' | 'hard';

export interface MachineState {
  readonly plan: RunPlan;
  readonly successors: readonly (readonly number[])[];
  /** Unfinished dependencies, by step. */
  readonly unmet: number[];
  /** Dependencies that succeeded (`good`) and that failed (`bad`). The other finished ones were skipped. */
  readonly good: number[];
  readonly bad: number[];
  readonly steps: MachineStepState[];
  /** By the step that waits for the race. */
  readonly races: ReadonlyMap<number, RaceState>;
  /** Why steps that may still be in progress are no longer needed (R3). */
  readonly calledOff: Map<number, Failure>;
  readonly fans: Map<number, FanOut>;
  /** Steps with a race that are due. */
  readonly due: Set<number>;
  /** Steps that are due and need a decision first. */
  undecided: number[];
  /** Steps that may start, in order; those before `nextReady` have started. */
  readonly ready: number[];
  nextReady: number;
  /** Steps with an item that may begin, in order. */
  readonly openFans: Set<number>;
  /** By `keyOf`. */
  readonly waits: Map<string, UnitWait>;
  /** Keys of waits that are over, in order. */
  readonly woken: Set<string>;
  /** Units whose ladder begins when the run resumes, by `keyOf`; they stay in flight (M9). */
  readonly held: Map<string, UnitKey>;
  /** Waits for reviews. */
  reviews: number;
  /** Child runs that rest, by `keyOf` of the unit in progress that started them. */
  readonly resting: Map<string, string>;
  /** Waits for child runs that rest. */
  restingWaits: number;
  /** Whether the run rests (M13). */
  isAtRest: boolean;
  /** Units in flight. */
  inFlight: number;
  /** Steps whose decision is in progress. */
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
  return {
    plan,
    successors: successorsOf(plan.steps),
    unmet: plan.steps.map(({ dependencies }) => dependencies.length),
    good: plan.steps.map(() => 0),
    bad: plan.steps.map(() => 0),
    steps: plan.steps.map(() => 'pending'),
    races: new Map(
      plan.steps.flatMap(({ race }, step) => (race === undefined ? [] : [[step, openRace(race)]])),
    ),
    calledOff: new Map(),
    fans: new Map(),
    due: new Set(),
    undecided: [],
    ready: [],
    nextReady: 0,
    openFans: new Set(),
    waits: new Map(),
    woken: new Set(),
    held: new Map(),
    reviews: 0,
    resting: new Map(),
    restingWaits: 0,
    isAtRest: false,
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

/** Keeps the count of ladders; the caller keeps the count of units in flight. */
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

/** @param by 1 when the unit becomes in flight, -1 when it no longer is */
export function countInFlight(state: MachineState, key: UnitKey, by: 1 | -1): void {
  state.inFlight += by;
  const fan = fanOf(state, key);
  if (fan !== undefined) fan.running += by;
}

/** The fan-out that an item belongs to. */
export function fanOf(state: MachineState, { step, item }: UnitKey): FanOut | undefined {
  return item === 0 ? undefined : state.fans.get(step);
}

/** Why a unit is no longer needed; undefined: it is, as far as races go. */
export function findCallOff(state: MachineState, { step, item }: UnitKey): Failure | undefined {
  return (
    state.calledOff.get(step) ?? (item === 0 ? undefined : (state.fans.get(step)?.calledOff ?? undefined))
  );
}

/** Waiting is state: what a step waits for while it is not in flight, and what its driver needs to resume it. */
export interface Wait {
  readonly awaiting: Awaiting;
  /** Deadline in Unix milliseconds; null = it ends only by a wake. */
  readonly until: number | null;
  /** The ladder resumes afterwards. */
  readonly ladder?: true;
  /** Small; owned by the driver. The machine reads `run_id` of a wait for a child run. */
  readonly ref: Json;
}

/** The child run that a unit waits for. */
export function childOf({ awaiting, ref }: Wait): string | undefined {
  if (awaiting !== 'run') return undefined;
  return ((ref ?? {}) as { readonly run_id?: string }).run_id;
}

const stateCodes: Record<MachineStepState, string> = {
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

const states = new Map(Object.entries(stateCodes).map(([state, code]) => [code, state as MachineStepState]));

/** Writes states in order, a letter each; a number after it is the repeat count. */
export function packStates(list: readonly MachineStepState[]): string {
  return list
    .map((state) => stateCodes[state])
    .join('')
    .replace(/(.)\1+/g, (row, code) => `${code}${row.length}`);
}

export function unpackStates(text: string): MachineStepState[] {
  return [...text.matchAll(/([a-z])(\d*)/g)].flatMap(([, code = '', count]) =>
    Array.from({ length: count === '' ? 1 : Number(count) }, () => states.get(code) ?? 'pending'),
  );
}
