/**
 * The waiting units of a run. A waiting unit is not in flight in the run. An item that waits for a child run, a free
 * slot, its next attempt or an answer still counts among the items, because `max_parallel` limits what is in progress
 * there. An item whose child run rests does not: it waits for people, as the child run does.
 */
import { limitOf, offerItems, reopenFanOut } from './fan-out.ts';
import {
  type ChildRest,
  childOf,
  countInFlight,
  fanOf,
  keyOf,
  type MachineState,
  setUnitState,
  type UnitKey,
  type UnitWait,
  unitState,
  type Wait,
} from './machine-state.ts';

/** M5: so that the snapshot of a run stays small. */
export const mostWaits = 2_000;

/** Waits of an item that is at work, as far as its author's `max_parallel` goes. */
const atWork: ReadonlySet<Wait['awaiting']> = new Set(['run', 'slot', 'retry', 'callback']);

/** Whether a waiting unit waits for a child run that rests. */
export function hasRestingChild({ resting }: MachineState, { step, item, wait }: UnitWait): boolean {
  const child = childOf(wait);
  return child !== undefined && resting.get(keyOf({ step, item })) === child;
}

function keepsPlace(state: MachineState, unit: UnitWait): boolean {
  return atWork.has(unit.wait.awaiting) && !hasRestingChild(state, unit);
}

/** Makes a unit in flight wait. */
export function addWait(state: MachineState, { step, item, wait }: UnitWait): void {
  const key = { step, item };
  setUnitState(state, key, 'waiting');
  countInFlight(state, key, -1);
  keepWait(state, { wait, ...key });
  if (!keepsPlace(state, { step, item, wait })) reopenFanOut(state, step);
}

/** Records the wait of a unit that is not in flight. */
export function keepWait(state: MachineState, { step, item, wait }: UnitWait): void {
  const unit = { step, item, wait };
  state.waits.set(keyOf(unit), unit);
  if (wait.awaiting === 'review') state.reviews += 1;
  if (hasRestingChild(state, unit)) state.restingWaits += 1;
  const fan = fanOf(state, unit);
  if (fan !== undefined && keepsPlace(state, unit)) fan.running += 1;
  if (fan !== undefined && wait.awaiting === 'slot') fan.inLine += 1;
}

/**
 * Removes the wait of a unit that resumes or is given up; the caller sets its state. It is not in flight until it is
 * counted again.
 */
function removeWait(state: MachineState, { step, item, wait }: UnitWait): void {
  const name = keyOf({ step, item });
  state.waits.delete(name);
  state.woken.delete(name);
  if (wait.awaiting === 'review') state.reviews -= 1;
  if (hasRestingChild(state, { step, item, wait })) state.restingWaits -= 1;
  const fan = fanOf(state, { step, item });
  if (fan !== undefined && keepsPlace(state, { step, item, wait })) fan.running -= 1;
  if (fan !== undefined && wait.awaiting === 'slot') {
    fan.inLine -= 1;
    offerItems(state, step);
  }
}

/**
 * Records that the child run of a unit in progress rests, or no longer does; news of another child run, and repeated
 * news, change nothing. While it rests, an item leaves its place to the next. Its child run continues without asking, so
 * for a while more items than `max_parallel` may be at work.
 */
export function noteChildRest(state: MachineState, { step, item, child, rests }: ChildRest): void {
  const key = { step, item };
  const name = keyOf(key);
  const now = unitState(state, key);
  if (now !== 'running' && now !== 'escalating' && now !== 'waiting') return;
  const unit = state.waits.get(name);
  const before = unit !== undefined && hasRestingChild(state, unit);
  if (rests) state.resting.set(name, child);
  else if (state.resting.get(name) === child) state.resting.delete(name);
  const after = unit !== undefined && hasRestingChild(state, unit);
  if (before === after) return;
  const by = after ? 1 : -1;
  state.restingWaits += by;
  const fan = fanOf(state, key);
  if (fan === undefined) return;
  fan.running -= by;
  if (after) reopenFanOut(state, step);
}

/** The first unit whose wait is over and that may resume. */
export function takeWokenUnit(state: MachineState): UnitWait | null {
  for (const name of state.woken) {
    const unit = state.waits.get(name);
    if (unit === undefined) {
      state.woken.delete(name);
      continue;
    }
    const fan = fanOf(state, unit);
    if (fan !== undefined && fan.running >= limitOf(state, unit.step) && !atWork.has(unit.wait.awaiting)) {
      state.woken.delete(name);
      fan.blocked.push(name);
      continue;
    }
    removeWait(state, unit);
    return unit;
  }
  return null;
}

/** Removes the matching waits; their units count as in flight until they are given up. */
export function takeWaits(state: MachineState, which: (key: UnitKey) => boolean): UnitWait[] {
  const taken = [...state.waits.values()].filter(which);
  for (const unit of taken) {
    removeWait(state, unit);
    setUnitState(state, unit, 'escalating');
    countInFlight(state, unit, 1);
  }
  return taken;
}

/**
 * Whether a wake that comes now is kept for the unit: the unit is at work and may be about to wait, or its wait is not
 * over. Any other wake would be a second one (M8).
 */
export function hearsWake(state: MachineState, key: UnitKey): boolean {
  const unit = unitState(state, key);
  if (unit === 'running' || unit === 'escalating') return true;
  const name = keyOf(key);
  return unit === 'waiting' && !state.woken.has(name) && fanOf(state, key)?.blocked.includes(name) !== true;
}
