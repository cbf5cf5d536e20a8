/** The items of a step: how many run in parallel, how many may fail, and how the step as a whole ends. */
import type { Failure } from '../contracts/primitives.ts';
import {
  type FanOut,
  type MachineState,
  setUnitState,
  type UnitKey,
  type UnitState,
  unpackStates,
} from './machine-state.ts';

/**
 * @param kept states of all items, packed: those with a result from an earlier run do not begin; absent = none is kept
 * @returns whether an item is to begin
 */
export function openFanOut(
  state: MachineState,
  step: number,
  { items, kept = '' }: { readonly items: number; readonly kept?: string | undefined },
): boolean {
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
    blocked: [],
  };
  passKept(fan);
  state.fans.set(step, fan);
  return fan.next < items;
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
  const woken = fan.blocked.shift();
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
  | { readonly state: 'failed'; readonly error: Failure };

/**
 * Ends an item that is no longer in flight.
 * @returns whether too many have failed now, and how the step ends if this was its last item
 */
export function endItem(
  state: MachineState,
  { step, item, state: end, error }: UnitKey & { readonly state: UnitState; readonly error?: Failure },
): { readonly stopped: boolean; readonly whole: WholeEnd | null } {
  const fan = state.fans.get(step);
  if (fan === undefined) return { stopped: false, whole: null };
  setUnitState(state, { step, item }, end);
  fan.open -= 1;
  const tolerated = state.plan.steps[step]?.each?.tolerate ?? 0;
  const isFailure = end !== 'succeeded' && end !== 'skipped';
  // An item given up because of the failures is not a failure itself.
  if (isFailure && !(end === 'cancelled' && fan.isStopping)) {
    fan.failed += 1;
    fan.firstFailure ??= `item ${item}: ${error?.message ?? end}`;
  }
  const stopped = !fan.isStopping && fan.failed > tolerated;
  if (stopped) fan.isStopping = true;
  if (fan.isStopping) state.openFans.delete(step);
  else reopenFanOut(state, step);
  const isOver = fan.open === 0 && (fan.isStopping || fan.next === fan.states.length);
  const isReported = isOver && (state.phase === 'running' || state.phase === 'failing');
  return { stopped, whole: isReported ? wholeEnd(fan, tolerated) : null };
}

function wholeEnd(fan: FanOut, tolerated: number): WholeEnd {
  if (!fan.isStopping) return { state: 'succeeded' };
  const message = `${fan.failed} of ${fan.states.length} items failed, ${tolerated} may; first ${fan.firstFailure}`;
  return { state: 'failed', error: { code: 'items_failed', message } };
}
