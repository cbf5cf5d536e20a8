/** The items of a step: how many run in parallel, how many may fail, and how the step as a whole ends. */
import type { Failure } from '../contracts/primitives.ts';
import { enoughItems, tooFewItems } from '../graph/races.ts';
import {
  type FanOut,
  type MachineState,
  setUnitState,
  type UnitKey,
  type UnitState,
  unpackStates,
} from './machine-state.ts';

interface OpenedItems {
  readonly items: number;
  /** States of all items, packed: those that have ended do not begin. Absent: all begin. */
  readonly kept?: string | undefined;
  /** Kept items whose answers count; absent: all that have one. */
  readonly counted?: number | undefined;
}

/** @returns how the step ends; null: an item is to begin */
export function openFanOut(
  state: MachineState,
  step: number,
  { items, kept = '', counted }: OpenedItems,
): WholeEnd | null {
  const known = unpackStates(kept) as UnitState[];
  const fan: FanOut = {
    states: Array.from({ length: items }, (_, index) => known[index] ?? 'pending'),
    next: 0,
    running: 0,
    inLine: 0,
    open: 0,
    failed: 0,
    firstFailure: null,
    isStopping: false,
    judging: 0,
    good: 0,
    missed: 0,
    calledOff: null,
    blocked: [],
  };
  const ended = fan.states.filter((one) => one !== 'pending');
  fan.good = counted ?? ended.filter((one) => one === 'succeeded' || one === 'reused').length;
  fan.missed = ended.length - fan.good;
  passKept(fan);
  state.fans.set(step, fan);
  judgeEnough(state, step, fan);
  return fan.isStopping || fan.next === items ? wholeEnd(state, step, fan) : null;
}

/** Moves on to the next item that has not ended. */
function passKept(fan: FanOut): void {
  while (fan.next < fan.states.length && fan.states[fan.next] !== 'pending') fan.next += 1;
}

/** The next item that may begin. A step without one is considered again when one of its items ends. */
export function takeItem(state: MachineState): UnitKey | null {
  for (const step of state.openFans) {
    const fan = state.fans.get(step);
    if (fan !== undefined && mayBeginItem(state, step, fan)) {
      const item = fan.next + 1;
      fan.next = item;
      fan.open += 1;
      passKept(fan);
      if (fan.next === fan.states.length) state.openFans.delete(step);
      return { step, item };
    }
    state.openFans.delete(step);
  }
  return null;
}

/** The maximum number of items of a step in flight. */
export function limitOf(state: MachineState, step: number): number {
  return state.plan.steps[step]?.each?.max_parallel ?? state.plan.max_in_flight;
}

/** M10: enough to take every slot that becomes free until more have come. */
const mostInLine = 32;

function mayBeginItem(state: MachineState, step: number, fan: FanOut): boolean {
  return (
    !fan.isStopping &&
    fan.next < fan.states.length &&
    fan.running < limitOf(state, step) &&
    fan.inLine < mostInLine
  );
}

/** Called when one of its items is no longer in flight. */
export function reopenFanOut(state: MachineState, step: number): void {
  const fan = state.fans.get(step);
  if (fan === undefined) return;
  const hasRoom = fan.running < limitOf(state, step); // not where child runs have ended their rest
  const woken = hasRoom ? fan.blocked.shift() : undefined;
  if (woken !== undefined) state.woken.add(woken);
  offerItems(state, step);
}

/** Considers the items of a step that may begin now. */
export function offerItems(state: MachineState, step: number): void {
  const fan = state.fans.get(step);
  if (fan !== undefined && mayBeginItem(state, step, fan)) state.openFans.add(step);
}

export type WholeEnd =
  | { readonly state: 'succeeded' | 'skipped' }
  | { readonly state: 'failed' | 'cancelled'; readonly error: Failure };

interface ItemEnd extends UnitKey {
  readonly state: UnitState;
  readonly error?: Failure;
  /** Its answer does not count for `enough`. */
  readonly is_short?: true;
}

/**
 * Ends an item that is no longer in flight.
 * @returns whether no further item begins from now on, and how the step ends if this was its last item
 */
export function endItem(
  state: MachineState,
  { step, item, state: end, error, is_short }: ItemEnd,
): { readonly stopped: boolean; readonly whole: WholeEnd | null } {
  const fan = state.fans.get(step);
  if (fan === undefined) return { stopped: false, whole: null };
  setUnitState(state, { step, item }, end);
  fan.open -= 1;
  const isGivenUp = end === 'cancelled' && fan.isStopping; // because of the others: it is not a failure itself
  const isFailure = !isGivenUp && end !== 'succeeded' && end !== 'skipped';
  if (isFailure) fan.failed += 1;
  if (isFailure || (is_short === true && error !== undefined)) {
    fan.firstFailure ??= `item ${item}: ${error?.message ?? end}`;
  }
  if (end === 'succeeded' && is_short !== true) fan.good += 1;
  else fan.missed += 1;
  const wasStopping = fan.isStopping;
  judgeEnough(state, step, fan);
  if (fan.failed > toleratedOf(state, step)) fan.isStopping = true;
  if (!fan.isStopping) reopenFanOut(state, step);
  return { stopped: fan.isStopping && !wasStopping, whole: endOfFan(state, step, fan) };
}

function toleratedOf({ plan }: MachineState, step: number): number {
  const { tolerate, enough } = plan.steps[step]?.each ?? {};
  return tolerate ?? (enough === undefined ? 0 : Number.POSITIVE_INFINITY);
}

/** Stops a step with `enough` when enough items count, or when too few can. */
function judgeEnough({ plan }: MachineState, step: number, fan: FanOut): void {
  const { enough } = plan.steps[step]?.each ?? {};
  if (enough === undefined || fan.isStopping) return;
  const { good, missed, states, firstFailure: first } = fan;
  const all = states.length;
  if (good >= enough) fan.calledOff = enoughItems(good, all);
  else if (all - missed < enough) fan.calledOff = tooFewItems({ enough, missed, all, first });
  fan.isStopping = fan.calledOff !== null;
}

/** The end of a step of which no item is open and none begins; null: it continues, or its run was cancelled. */
export function endOfFan(state: MachineState, step: number, fan: FanOut): WholeEnd | null {
  const isOver = fan.open === 0 && (fan.isStopping || fan.next === fan.states.length);
  const isReported = isOver && (state.phase === 'running' || state.phase === 'failing');
  return isReported ? wholeEnd(state, step, fan) : null;
}

function wholeEnd(state: MachineState, step: number, fan: FanOut): WholeEnd {
  const { calledOff, failed, states, firstFailure } = fan;
  const isOver = state.calledOff.get(step);
  if (isOver !== undefined && fan.isStopping) return { state: 'cancelled', error: isOver };
  if (!fan.isStopping || calledOff?.code === 'enough') return { state: 'succeeded' };
  if (calledOff !== null) return { state: 'failed', error: calledOff };
  const message = `${failed} of ${states.length} items failed, ${toleratedOf(state, step)} may; first ${firstFailure}`;
  return { state: 'failed', error: { code: 'items_failed', message } };
}
