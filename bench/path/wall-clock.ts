import { readClock } from '../engine/clock.ts';

/**
 * Waits for the next millisecond to begin, so that it is exact to some microseconds: rows and histories have times of
 * the wall clock, `Date.now()` gives it in whole milliseconds, and a process's own start of time drifts away from it.
 * @returns what Unix time in milliseconds has over the machine's steady clock
 */
export function readWallOffset(): number {
  const before = Date.now();
  let now = before;
  while (now === before) now = Date.now();
  return now - readClock();
}
