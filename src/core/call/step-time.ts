/** The time that a step has for its call, over all rounds and attempts. Milliseconds. */
import type { Failure } from '../../contracts/primitives.ts';

/** With less time than this, no call is begun. */
const shortestRoundMs = 100;

/** What is left of a step's total timeout when its end can still be told before somebody else gives it up. */
export function callTimeOf(totalMs: number): number {
  return totalMs - Math.min(500, totalMs / 10);
}

/** Whether there is a call after a pause. */
export function hasTimeFor(delayMs: number, remainingMs: number): boolean {
  return delayMs + shortestRoundMs < remainingMs;
}

export function outOfTime({ code, message, details }: Failure, totalTimeoutMs: number): Failure {
  return {
    code: 'step_timeout',
    message: `not done within ${totalTimeoutMs} ms; last: ${message}`,
    details: { code, ...(details === undefined ? {} : { last: details }) },
  };
}
