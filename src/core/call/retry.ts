/**
 * When a call is tried again, what bounds it, whoever makes it, and the time that a step has for it, over all
 * rounds and attempts. Durations in milliseconds.
 */
import type { Failure } from '../../contracts/primitives.ts';

/** When a transient failure is tried again. Durations in milliseconds. */
export interface RetrySettings {
  readonly max: number;
  readonly initialMs: number;
  readonly factor: number;
  readonly maxDelayMs: number;
}

export const defaultRetry: RetrySettings = { max: 3, initialMs: 1_000, factor: 2, maxDelayMs: 60_000 };

/**
 * Exponential backoff with ±20 % jitter, never above the longest delay.
 * @param failures counted failures so far, at least 1
 * @param random 0 … 1
 */
export function backoffMs(settings: Omit<RetrySettings, 'max'>, failures: number, random: number): number {
  const delay = Math.min(settings.initialMs * settings.factor ** (failures - 1), settings.maxDelayMs);
  return Math.min(Math.round(delay * (0.8 + 0.4 * random)), settings.maxDelayMs);
}

/** Instances that one call tries before its owner decides when to come again. */
export const maxInstances = 3;

/** The owner of a call lets it wait so long, for a slot or for an instance to appear. */
export const longestWaitMs = 2_000;

/** An instance may ask for a pause, but not for ever. */
export const longestRetryAfterMs = 60_000;

/** For a slot or an instance nobody comes again earlier; later only where it is known when. */
export const shortestWaitMs = 500;

/** Spaces waits that no count bounds: an instance that comes back is noticed within seconds. */
export const uncountedDelay: Omit<RetrySettings, 'max'> = {
  initialMs: 500,
  factor: 1.6,
  maxDelayMs: 10_000,
};

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
