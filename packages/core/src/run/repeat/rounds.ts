/**
 * The rounds of a step with `repeat`: each is an item of its step, with attempts, costs and waits of its own.
 *
 * R1 A round begins only after the one before it has succeeded and was judged.
 * R2 The condition is judged on the output of every round that succeeded; the first that meets it is the last round.
 * R3 There are never more rounds than `max`, and none begins later than `timeout` after the first one.
 * R4 A step fails with its round, and is skipped where a person skipped the round.
 * R5 Between two rounds the step waits for `pause`, and is not in flight.
 */
import type { Failure } from '../../contracts/primitives.ts';
import type { WholeEnd } from '../fan-out.ts';
import { type MachineState, setUnitState, type UnitKey, type UnitState } from '../machine-state.ts';
import { keepWait } from '../waits.ts';

/** What follows a round that has succeeded. */
export type RoundVerdict =
  /** The next round begins at this moment, Unix milliseconds; null = at once. */
  | { readonly type: 'again'; readonly until: number | null }
  /** Its output is that of the step. */
  | { readonly type: 'done' }
  | { readonly type: 'fail'; readonly error: Failure };

/**
 * Ends a round that is no longer in flight.
 * @returns the end of its step; judge: the round decides that; null: its run ends, and the step with it
 */
export function endRound(
  state: MachineState,
  { step, item, state: end, error }: UnitKey & { readonly state: UnitState; readonly error?: Failure },
): WholeEnd | 'judge' | null {
  const fan = state.fans.get(step);
  if (fan === undefined) return null;
  setUnitState(state, { step, item }, end);
  fan.open -= 1;
  if (end === 'succeeded') return state.phase === 'running' ? 'judge' : null;
  if (end === 'skipped') return { state: 'skipped' };
  if (end === 'cancelled') return null;
  const { code, message } = error ?? { code: 'internal', message: end };
  return { state: 'failed', error: { ...error, code, message: `round ${item}: ${message}` } };
}

/** Adds the next round. @returns its wait; null: it may begin */
export function addRound(state: MachineState, step: number, until: number | null) {
  const fan = state.fans.get(step);
  if (fan === undefined) return null;
  if (until === null) {
    fan.states.push('pending');
    state.openFans.add(step);
    return null;
  }
  fan.states.push('waiting');
  fan.next = fan.states.length;
  fan.open += 1;
  const wait = { awaiting: 'time', until, ref: null } as const;
  keepWait(state, { step, item: fan.next, wait });
  return { step, item: fan.next, wait };
}
