/**
 * The units of a run that wait. What waits takes no room in the run; an item that waits for a run of its own keeps its
 * place among the items, since `max_parallel` is about what is under way there.
 */
import { limitOf, reopenFanOut } from './fan-out.ts';
import {
  countInFlight,
  fanOf,
  keyOf,
  type RunState,
  setUnitState,
  type UnitKey,
  type WaitingUnit,
} from './run-state.ts';
import type { Wait } from './wait.ts';

/** So that what a run carries from one history to the next stays small. */
export const mostWaits = 2_000;

function keepsPlace({ awaiting }: Wait): boolean {
  return awaiting === 'run';
}

/** Of a unit that took room. */
export function addWait(state: RunState, { step, item, wait }: WaitingUnit): void {
  const key = { step, item };
  setUnitState(state, key, 'waiting');
  countInFlight(state, key, -1);
  keepWait(state, { ...key, wait });
  if (!keepsPlace(wait)) reopenFanOut(state, step);
}

/** Of a unit that takes no room. */
export function keepWait(state: RunState, { step, item, wait }: WaitingUnit): void {
  state.waits.set(keyOf({ step, item }), { step, item, wait });
  if (wait.awaiting === 'review') state.reviews += 1;
  const fan = fanOf(state, { step, item });
  if (fan !== undefined && keepsPlace(wait)) fan.running += 1;
}

/** The unit goes on, or is given up; its state is the caller's. It takes no room until it is counted again. */
function removeWait(state: RunState, { step, item, wait }: WaitingUnit): void {
  const name = keyOf({ step, item });
  state.waits.delete(name);
  state.woken.delete(name);
  if (wait.awaiting === 'review') state.reviews -= 1;
  const fan = fanOf(state, { step, item });
  if (fan !== undefined && keepsPlace(wait)) fan.running -= 1;
}

/** The first whose wait is over and that may go on. */
export function takeWokenUnit(state: RunState): WaitingUnit | null {
  for (const name of state.woken) {
    const unit = state.waits.get(name);
    if (unit === undefined) {
      state.woken.delete(name);
      continue;
    }
    const fan = fanOf(state, unit);
    if (fan !== undefined && fan.running >= limitOf(state, unit.step) && !keepsPlace(unit.wait)) {
      state.woken.delete(name);
      fan.blocked.push(name);
      continue;
    }
    removeWait(state, unit);
    return unit;
  }
  return null;
}

/** All of them, or those of a step; they take room until they are given up. */
export function takeWaits(state: RunState, which: (key: UnitKey) => boolean): WaitingUnit[] {
  const taken = [...state.waits.values()].filter(which);
  for (const unit of taken) {
    removeWait(state, unit);
    setUnitState(state, unit, 'escalating');
    countInFlight(state, unit, 1);
  }
  return taken;
}
