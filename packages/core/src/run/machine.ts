/**
 * The run as a state machine: which step may start, and when the run ends. Pure and free of promises, so that replaying
 * a thousand steps costs what their edges cost: every edge is visited once.
 *
 * M1 A unit (a step, or one of its items) starts at most once.
 * M2 A unit starts after all dependencies of its step are done, and only if its `run_if` holds.
 * M3 At most `max_in_flight` units are in flight; a unit that may start does so as soon as there is room.
 * M4 After a failure that stops the run, a cancel or its deadline nothing starts: running units may end, waiting units
 *    are given up.
 * M5 A waiting unit is not in flight, and no step or item starts while `mostWaits` units wait.
 * M6 Under soft pressure of the history nothing starts once nothing is in flight, under hard pressure nothing starts
 *    at all; `continue_as_new` comes only when no unit is in flight and no decision is pending.
 * M7 `finish` comes exactly once, when nothing runs and nothing waits; later events are ignored.
 * M8 An event of a unit that is not in progress, or a repeated one, changes nothing.
 * M9 While a run is paused nothing begins, including ladders: units in flight end, and the rest begins on resume.
 * M10 No item begins while `mostInLine` items of its step wait for a free slot.
 * M11 A judgement of a round is pending work: the run neither ends nor continues as new before it (R1 to R5: repeat/rounds.ts).
 * M12 A unit is called off at most once, and then neither waits nor climbs (R1 to R3 of graph/races.ts).
 * M13 A run rests while every open unit of it waits for a review, of its own or of a child run that rests.
 *     `rest_changed` comes when its rest begins and when it ends, unless the run is stopping.
 */
import type { Failure } from '../contracts/primitives.ts';
import { enoughSteps, isLost, isWon, notNeeded, type RaceState, tooFewSteps } from '../graph/races.ts';
import { endItem, endOfFan, openFanOut, takeItem, type WholeEnd } from './fan-out.ts';
import {
  type ChildRest,
  countInFlight,
  type FanOut,
  findCallOff,
  type HistoryPressure,
  keyOf,
  type MachineState,
  setUnitState,
  type UnitKey,
  type UnitState,
  unitState,
  type Wait,
} from './machine-state.ts';
import type { PlannedStep, RunPlan } from './plan.ts';
import {
  type Consequences,
  type Doneness,
  findFirstFailure,
  openRun,
  propagateEnd,
  regionOf,
} from './readiness.ts';
import { addRound, endRound, type RoundVerdict } from './repeat/rounds.ts';
import { addWait, mostWaits, noteChildRest, takeWaits, takeWokenUnit } from './waits.ts';

export type { MachineState, MachineStepState } from './machine-state.ts';

/** The result of an evaluation: whether a step runs, and how many items it has. */
export type StepVerdict =
  /**
   * `kept`: the states of its items or rounds, packed, if an earlier run has results of some, or a condition skips some.
   * counted: those of them whose answers count; absent: all with one.
   */
  | { readonly type: 'go'; readonly items?: number; readonly kept?: string; readonly counted?: number }
  | { readonly type: 'skip' }
  | { readonly type: 'fail'; readonly error: Failure };

/** An end that nothing else stores. */
export interface UnitChange extends UnitKey {
  readonly state: 'skipped' | 'succeeded' | 'failed' | 'cancelled';
  readonly error?: Failure;
}

type EndState = Exclude<UnitState, 'pending' | 'running' | 'escalating' | 'waiting' | 'reused'>;

export type RunMachineEvent =
  | { readonly type: 'decided'; readonly steps: readonly number[]; readonly verdicts: readonly StepVerdict[] }
  /** is_short: it succeeded, and its answer does not count for `enough`; the error is why that is unknown. */
  | (UnitKey & End & { readonly type: 'step_ended'; readonly is_short?: true })
  /** A round was judged. */
  | (UnitKey & { readonly type: 'judged'; readonly verdict: RoundVerdict })
  /** The unit failed in a way that a ladder may cure. */
  | (UnitKey & { readonly type: 'step_escalated' })
  | (UnitKey & { readonly type: 'step_waiting'; readonly wait: Wait })
  /** The unit's wait was satisfied, or its deadline has passed. */
  | (UnitKey & { readonly type: 'step_woken' })
  | (ChildRest & { readonly type: 'child_rest' })
  | { readonly type: 'paused' | 'resumed' }
  | { readonly type: 'cancel_requested' }
  | { readonly type: 'timed_out'; readonly error: Failure }
  /** The history of the run is long. */
  | { readonly type: 'history_grew'; readonly pressure: HistoryPressure };

export type RunOutcome = 'succeeded' | 'failed' | 'cancelled';

export type RunCommand =
  | { readonly type: 'decide'; readonly steps: readonly number[] }
  | (UnitKey & { readonly type: 'execute' })
  /** Judges a round that has succeeded. */
  | (UnitKey & { readonly type: 'judge' })
  /** Begins the unit's ladder. */
  | (UnitKey & { readonly type: 'escalate' })
  | (UnitKey & { readonly type: 'resume'; readonly wait: Wait })
  | (UnitKey & { readonly type: 'listen'; readonly wait: Wait })
  /** Ends the unit in its current state: its result is no longer needed. why: it was called off. */
  | (UnitKey & { readonly type: 'give_up'; readonly wait: Wait | null; readonly why?: Failure })
  /** Asks the unit, which is in flight, to end soon. */
  | (UnitKey & { readonly type: 'call_off'; readonly why: Failure })
  | { readonly type: 'record'; readonly changes: readonly UnitChange[] }
  | { readonly type: 'cancel_running' | 'cancel_escalations' | 'continue_as_new' }
  /** The state has which (M13). */
  | { readonly type: 'rest_changed' }
  | { readonly type: 'finish'; readonly outcome: RunOutcome; readonly error: Failure | null };

export interface BegunRun {
  readonly state: MachineState;
  readonly commands: RunCommand[];
}

export function startRun(plan: RunPlan, isPaused = false): BegunRun {
  const { state, ...consequences } = openRun(plan);
  state.isPaused = isPaused;
  return { state, commands: [...follow(state, consequences), ...advance(state)] };
}

/** Continues a state that was restored from a snapshot. */
export function continueRun(state: MachineState): RunCommand[] {
  return advance(state);
}

export function applyEvent(state: MachineState, event: RunMachineEvent): RunCommand[] {
  if (state.phase === 'finished') return [];
  switch (event.type) {
    case 'decided':
      return [...takeVerdicts(state, event), ...advance(state)];
    case 'step_ended':
      return [...endUnit(state, event), ...advance(state)];
    case 'judged':
      return [...takeJudgement(state, event), ...advance(state)];
    case 'step_escalated':
      return escalateUnit(state, event);
    case 'step_waiting':
      return [...parkUnit(state, event), ...advance(state)];
    case 'step_woken':
      if (unitState(state, event) !== 'waiting') return [];
      state.woken.add(keyOf(event));
      return advance(state);
    case 'child_rest':
      noteChildRest(state, event);
      return advance(state);
    case 'paused':
    case 'resumed':
      state.isPaused = event.type === 'paused';
      return [...beginHeld(state), ...advance(state)];
    case 'history_grew':
      state.historyPressure = event.pressure;
      return advance(state);
    case 'cancel_requested':
    case 'timed_out':
      return stopRun(state, event);
  }
}

function stopRun(
  state: MachineState,
  event: Extract<RunMachineEvent, { type: 'cancel_requested' | 'timed_out' }>,
): RunCommand[] {
  if (state.phase === 'cancelling') return [];
  if (event.type === 'timed_out') state.error ??= event.error;
  state.phase = event.type === 'timed_out' ? 'failing' : 'cancelling';
  return [{ type: 'cancel_running' }, ...giveUpWaits(state, () => true), ...advance(state)];
}

function isWanted(state: MachineState, key: UnitKey): boolean {
  const { step, item } = key;
  if (state.phase !== 'running' || findCallOff(state, key) !== undefined) return false;
  return item === 0 || state.fans.get(step)?.isStopping !== true;
}

type GiveUp = Extract<RunCommand, { type: 'give_up' }>;

function giveUp(state: MachineState, key: UnitKey & Pick<GiveUp, 'wait'>): GiveUp {
  const why = findCallOff(state, key);
  return { type: 'give_up', ...key, ...(why === undefined ? {} : { why }) };
}

function escalateUnit(state: MachineState, { step, item }: UnitKey): RunCommand[] {
  const key = { step, item };
  if (unitState(state, key) !== 'running') return [];
  setUnitState(state, key, 'escalating');
  if (!isWanted(state, key)) return [giveUp(state, { ...key, wait: null })];
  state.held.set(keyOf(key), key);
  return beginHeld(state);
}

function beginHeld(state: MachineState): RunCommand[] {
  return state.isPaused ? [] : takeHeld(state, () => true).map((key) => ({ type: 'escalate', ...key }));
}

function takeHeld({ held }: MachineState, which: (key: UnitKey) => boolean): UnitKey[] {
  const taken = [...held.values()].filter(which);
  for (const key of taken) held.delete(keyOf(key));
  return taken;
}

/** Moves a unit to waiting; it is no longer in flight (M5). */
function parkUnit(
  state: MachineState,
  { step, item, wait }: Extract<RunMachineEvent, { type: 'step_waiting' }>,
): RunCommand[] {
  const key = { step, item };
  const before = unitState(state, key);
  if (before !== 'running' && before !== 'escalating') return [];
  if (!isWanted(state, key)) {
    setUnitState(state, key, 'escalating');
    return [giveUp(state, { ...key, wait })];
  }
  addWait(state, { wait, ...key });
  return [{ type: 'listen', ...key, wait }];
}

/** Gives up waiting units, and units whose ladder would begin after the pause. */
function giveUpWaits(state: MachineState, which: (key: UnitKey) => boolean): RunCommand[] {
  const held = takeHeld(state, which).map((key) => ({ wait: null, ...key }));
  return [...held, ...takeWaits(state, which)].map((unit) => giveUp(state, unit));
}

function takeVerdicts(
  state: MachineState,
  { steps, verdicts }: Extract<RunMachineEvent, { type: 'decided' }>,
): RunCommand[] {
  state.deciding -= steps.length;
  const commands: RunCommand[] = [];
  for (const [at, step] of steps.entries()) {
    const verdict = verdicts[at];
    state.steps[step] = 'pending';
    if (state.phase !== 'running' || verdict === undefined) continue;
    const why = state.calledOff.get(step);
    if (why !== undefined) {
      commands.push(...endWhole(state, step, { state: 'cancelled', error: why }));
      continue;
    }
    switch (verdict.type) {
      case 'skip':
        state.steps[step] = 'skipped';
        commands.push(...propagate(state, step, 'skipped'));
        break;
      case 'fail':
        commands.push(...endStep(state, step, { state: 'failed', error: verdict.error }));
        break;
      case 'go':
        commands.push(...beginDecided(state, step, verdict));
    }
  }
  return commands;
}

/** A step whose items are all kept, or that has none, has ended. The last of kept rounds is judged. */
function beginDecided(
  state: MachineState,
  step: number,
  { items, kept, counted }: Extract<StepVerdict, { type: 'go' }>,
): RunCommand[] {
  const whole = items === undefined ? null : openFanOut(state, step, { items, kept, counted });
  if (whole !== null && state.plan.steps[step]?.repeats === true) {
    setUnitState(state, { step, item: 0 }, 'running');
    return judge(state, { step, item: items ?? 0 });
  }
  if (whole !== null) return endWhole(state, step, whole);
  state.ready.push(step);
  return [];
}

interface End {
  readonly state: EndState;
  readonly error?: Failure;
}

function endUnit(state: MachineState, event: UnitKey & End & { readonly is_short?: true }): RunCommand[] {
  const { step, item } = event;
  const before = unitState(state, event);
  if (before !== 'running' && before !== 'escalating') return [];
  countInFlight(state, { step, item }, -1);
  state.resting.delete(keyOf({ step, item }));
  if (item === 0) return endStep(state, step, event);
  if (state.plan.steps[step]?.repeats === true) {
    const why = state.calledOff.get(step);
    const end = endRound(state, event);
    if (why !== undefined) return endWhole(state, step, { state: 'cancelled', error: why });
    if (end === 'judge') return judge(state, { step, item });
    return end === null ? [] : endWhole(state, step, end);
  }
  const { stopped, whole } = endItem(state, event);
  const given = stopped ? stopItems(state, step) : [];
  return whole === null ? given : [...given, ...endWhole(state, step, whole)];
}

function judge(state: MachineState, { step, item }: UnitKey): RunCommand[] {
  const fan = state.fans.get(step);
  if (fan === undefined) return [];
  fan.judging = item;
  state.deciding += 1;
  return [{ type: 'judge', step, item }];
}

function takeJudgement(
  state: MachineState,
  { step, item, verdict }: Extract<RunMachineEvent, { type: 'judged' }>,
): RunCommand[] {
  const fan = state.fans.get(step);
  if (fan === undefined || item === 0 || fan.judging !== item) return [];
  fan.judging = 0;
  state.deciding -= 1;
  if (state.phase !== 'running') return [];
  const why = state.calledOff.get(step);
  if (why !== undefined) return endWhole(state, step, { state: 'cancelled', error: why });
  switch (verdict.type) {
    case 'done':
      return endStep(state, step, { state: 'succeeded' }); // stored by the judgement
    case 'fail':
      return endWhole(state, step, { state: 'failed', error: verdict.error });
    case 'again': {
      const wait = addRound(state, step, verdict.until);
      return wait === null ? [] : [{ type: 'listen', ...wait }];
    }
  }
}

/** A step with items has no attempt of its own that would store its end. */
function endWhole(state: MachineState, step: number, end: WholeEnd): RunCommand[] {
  return [{ type: 'record', changes: [{ step, item: 0, ...end }] }, ...endStep(state, step, end)];
}

function endStep(state: MachineState, step: number, end: End): RunCommand[] {
  setUnitState(state, { step, item: 0 }, end.state);
  if (state.calledOff.has(step)) return []; // R3
  const planned = state.plan.steps[step];
  if (end.state === 'succeeded') return propagate(state, step, 'good');
  if (end.state === 'skipped') return propagate(state, step, 'skipped');
  if (state.phase !== 'running') return [];
  if (planned?.continues === true && end.state !== 'cancelled') return propagate(state, step, 'bad');
  state.phase = 'failing';
  state.error = {
    code: 'step_failed',
    message: `step ${planned?.id}: ${end.error?.message ?? end.state}`,
    details: { step_id: planned?.id ?? '', code: end.error?.code ?? end.state },
  };
  const stop: RunCommand[] = state.escalating > 0 ? [{ type: 'cancel_escalations' }] : [];
  return [...stop, ...giveUpWaits(state, () => true)];
}

function propagate(state: MachineState, step: number, how: Doneness): RunCommand[] {
  return follow(state, propagateEnd(state, step, how));
}

function follow(state: MachineState, { skipped, decided }: Consequences): RunCommand[] {
  return [...recordSkipped(skipped), ...decided.flatMap((step) => decideRace(state, step))];
}

/** R1: calls off what only the race of a step needs. If too few can succeed, the step fails. */
function decideRace(state: MachineState, step: number): RunCommand[] {
  const { id } = state.plan.steps[step] as PlannedStep;
  const race = state.races.get(step) as RaceState;
  if (state.phase === 'cancelling') return [];
  if (state.steps[step] === 'pending' && isLost(race)) {
    const error = tooFewSteps(race, describeStep(state, findFirstFailure(state, step) as number));
    return [...callOffSteps(state, step, error), ...endWhole(state, step, { state: 'failed', error })];
  }
  return callOffSteps(state, step, isWon(race) ? enoughSteps(id, race) : notNeeded(id));
}

function describeStep({ plan, steps }: MachineState, step: number): string {
  return `step ${plan.steps[step]?.id}: ${steps[step]}`;
}

/** @param join the step whose race is decided */
function callOffSteps(state: MachineState, join: number, why: Failure): RunCommand[] {
  const changes: UnitChange[] = [];
  const commands: RunCommand[] = [];
  for (const step of regionOf(state, join)) {
    if (state.calledOff.has(step)) continue;
    state.calledOff.set(step, why);
    const before = state.steps[step];
    const fan = state.fans.get(step);
    if (before === 'pending') {
      state.steps[step] = 'cancelled';
      changes.push({ step, item: 0, state: 'cancelled', error: why });
    } else if (fan === undefined) commands.push(...callOffUnits(state, [{ step, item: 0 }]));
    else if (before === 'running') commands.push(...callOffFan(state, step, fan));
  }
  forgetCancelled(state);
  return [...(changes.length === 0 ? [] : [{ type: 'record', changes } as const]), ...commands];
}

/** Steps that were called off before they began. */
function forgetCancelled(state: MachineState): void {
  const isOpen = (step: number): boolean => state.steps[step] === 'pending';
  state.undecided = state.undecided.filter(isOpen);
  for (const step of state.ready.splice(state.nextReady)) if (isOpen(step)) state.ready.push(step);
}

/** A step of which no item is open ends at once, unless a round of it is being judged. */
function callOffFan(state: MachineState, step: number, fan: FanOut): RunCommand[] {
  if (fan.calledOff !== null) return []; // its items are called off already
  fan.isStopping = true;
  const commands = stopItems(state, step);
  const whole = fan.judging === 0 ? endOfFan(state, step, fan) : null;
  return whole === null ? commands : [...commands, ...endWhole(state, step, whole)];
}

/** Its items that wait are given up. Those in flight are called off if others are enough, or too few; else they end. */
function stopItems(state: MachineState, step: number): RunCommand[] {
  state.openFans.delete(step);
  const fan = state.fans.get(step);
  if (findCallOff(state, { step, item: 1 }) === undefined)
    return giveUpWaits(state, (key) => key.step === step);
  return callOffUnits(state, fan?.states.map((_, at) => ({ step, item: at + 1 })) ?? []);
}

/** Calls off the units in flight among these, and gives up the others that have begun. */
function callOffUnits(state: MachineState, keys: readonly UnitKey[]): RunCommand[] {
  const isInFlight = (key: UnitKey): boolean => {
    const now = unitState(state, key);
    return (now === 'running' || now === 'escalating') && !state.held.has(keyOf(key));
  };
  const called = keys
    .filter(isInFlight)
    .map((key) => ({ type: 'call_off', ...key, why: findCallOff(state, key) as Failure }) as const);
  const names = new Set(keys.map(keyOf));
  return [...called, ...giveUpWaits(state, (key) => names.has(keyOf(key)))];
}

function recordSkipped(skipped: readonly number[]): RunCommand[] {
  if (skipped.length === 0) return [];
  return [{ type: 'record', changes: skipped.map((step) => ({ step, item: 0, state: 'skipped' })) }];
}

function advance(state: MachineState): RunCommand[] {
  const commands: RunCommand[] = [];
  if (mayBegin(state) && state.undecided.length > 0) {
    const steps = state.undecided;
    state.undecided = [];
    state.deciding += steps.length;
    for (const step of steps) state.steps[step] = 'deciding';
    commands.push({ type: 'decide', steps });
  }
  while (mayBegin(state) && state.inFlight < state.plan.max_in_flight) {
    const next = takeNext(state);
    if (next === null) break;
    countInFlight(state, next, 1);
    commands.push(next);
  }
  commands.push(...changeRest(state));
  if (state.inFlight + state.deciding > 0) return commands;
  if (isOver(state)) commands.push(finish(state));
  else if (state.historyPressure !== 'none') commands.push({ type: 'continue_as_new' });
  return commands;
}

function changeRest(state: MachineState): RunCommand[] {
  const isAtRest = rests(state);
  if (state.phase !== 'running' || isAtRest === state.isAtRest) return [];
  state.isAtRest = isAtRest;
  return [{ type: 'rest_changed' }];
}

/** M13. Every unit that can begin has begun, except in a pause, and in the last moments of a history. */
function rests(state: MachineState): boolean {
  const { waits, reviews, restingWaits, woken, undecided, ready, nextReady, openFans } = state;
  if (state.inFlight + state.deciding + woken.size > 0 || waits.size === 0) return false;
  if (waits.size > reviews + restingWaits) return false;
  const hasNext = undecided.length > 0 || nextReady < ready.length || openFans.size > 0;
  return !hasNext || waits.size >= mostWaits;
}

function mayBegin({ phase, isPaused, historyPressure, inFlight, deciding }: MachineState): boolean {
  return (
    phase === 'running' &&
    !isPaused &&
    historyPressure !== 'hard' &&
    (historyPressure === 'none' || inFlight + deciding > 0)
  );
}

type Beginning = Extract<RunCommand, { type: 'execute' | 'resume' }>;

/** Woken units first, because a person may wait for the effect of a decision. Then steps, then items. */
function takeNext(state: MachineState): Beginning | null {
  return takeWoken(state) ?? (state.waits.size < mostWaits ? (takeStep(state) ?? takeNextItem(state)) : null);
}

function takeWoken(state: MachineState): Beginning | null {
  const unit = takeWokenUnit(state);
  if (unit === null) return null;
  setUnitState(state, unit, unit.wait.ladder === true ? 'escalating' : 'running');
  return { type: 'resume', ...unit };
}

function takeStep(state: MachineState): Beginning | null {
  for (;;) {
    const step = state.ready[state.nextReady];
    if (step === undefined) return null;
    state.nextReady += 1;
    setUnitState(state, { step, item: 0 }, 'running');
    if (!state.fans.has(step)) return { type: 'execute', step, item: 0 };
    state.openFans.add(step);
  }
}

function takeNextItem(state: MachineState): Beginning | null {
  const key = takeItem(state);
  if (key === null) return null;
  setUnitState(state, key, 'running');
  return { type: 'execute', ...key };
}

function isOver(state: MachineState): boolean {
  return (
    state.waits.size === 0 &&
    (state.phase !== 'running' ||
      (state.undecided.length === 0 && state.nextReady === state.ready.length && state.openFans.size === 0))
  );
}

function finish(state: MachineState): RunCommand {
  const outcome: RunOutcome =
    state.phase === 'cancelling' ? 'cancelled' : state.phase === 'failing' ? 'failed' : 'succeeded';
  state.phase = 'finished';
  for (const [index, step] of state.steps.entries()) {
    if (step === 'running') state.steps[index] = 'cancelled';
    if (step === 'pending') state.steps[index] = outcome === 'cancelled' ? 'cancelled' : 'skipped';
  }
  return { type: 'finish', outcome, error: state.error };
}
