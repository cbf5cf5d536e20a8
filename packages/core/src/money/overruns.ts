/**
 * Calls that cost more than the worst case that their instance declared. After three within an hour, the worst case does
 * not count for an hour: the price by the rate is reserved. Each project has overruns of its own, so that calls of one
 * change no price of another.
 */

import { overrunSpanMs } from '../contracts/limits.ts';

/** By project: when the last three overruns of its calls ended, newest first, Unix ms; null: there were fewer. */
export type Overran = Readonly<Record<string, readonly (number | null)[]>>;

export function hasOverrunOften(overran: Overran[string] | undefined, nowMs: number): boolean {
  const [last = null, , third = null] = overran ?? [];
  return last !== null && third !== null && last - third < overrunSpanMs && nowMs < last + overrunSpanMs;
}

export function lastOverrunMs(overran: Overran): number | null {
  const times = Object.values(overran).flatMap(([last = null]) => (last === null ? [] : [last]));
  return times.length === 0 ? null : Math.max(...times);
}
