/**
 * When a call is retried, the bounds on that, and the time that a step has for it over all rounds and attempts.
 * Durations in milliseconds.
 */
import type { Failure } from '../contracts/primitives.ts';
import { formatDuration } from '../duration.ts';

/** When a transient failure is retried, and a wrong answer asked for again. Durations in milliseconds. */
export interface RetrySettings {
  readonly max: number;
  readonly initialMs: number;
  readonly factor: number;
  readonly maxDelayMs: number;
  /** How often a wrong answer is asked for again. Default: never. */
  readonly invalidOutput?: number;
}

export const defaultRetry: RetrySettings = { max: 3, initialMs: 1_000, factor: 2, maxDelayMs: 60_000 };

/** The most attempts of one input: each of them may cost what one costs. */
export function mostAttempts({ max, invalidOutput = 0 }: RetrySettings): number {
  return 1 + max + invalidOutput;
}

/**
 * Exponential backoff with ±20 % jitter, never above the longest delay.
 * @param failures counted failures so far, at least 1
 * @param random 0 … 1
 */
export function backoffMs(settings: Omit<RetrySettings, 'max'>, failures: number, random: number): number {
  const delay = Math.min(settings.initialMs * settings.factor ** (failures - 1), settings.maxDelayMs);
  return Math.min(Math.round(delay * (0.8 + 0.4 * random)), settings.maxDelayMs);
}

/** Instances that one call tries before its owner schedules a retry. */
export const maxInstances = 3;

/** How long a call waits for a slot or a new instance. */
export const longestWaitMs = 2_000;

/** The longest pause that an instance may ask for. */
const longestRetryAfterMs = 60_000;

/** The pause before the next attempt, when the instance asked for one too. */
export function longerPause(ownMs: number, askedMs: number): number {
  return Math.max(ownMs, Math.min(askedMs, longestRetryAfterMs));
}

/** The shortest pause before a retry for a slot or an instance; longer only if the time is known. */
export const shortestWaitMs = 500;

/** Spaces waits that no count limits: an instance that returns is noticed within seconds. */
export const uncountedDelay: Omit<RetrySettings, 'max'> = { initialMs: 500, factor: 1.6, maxDelayMs: 10_000 };

/** No call starts with less time than this. */
const shortestRoundMs = 100;

/** The time of one attempt, when so much is left for the call: its own limit, or the rest, which is then known. */
export function timeOf(
  timeoutMs: number,
  leftMs: number,
): { readonly timeoutMs: number; readonly leftMs: number | null } {
  return leftMs < timeoutMs
    ? { timeoutMs: Math.max(1, Math.ceil(leftMs)), leftMs }
    : { timeoutMs, leftMs: null };
}

/** Whether time for a call is left after a pause. */
export function hasTimeFor(delayMs: number, remainingMs: number): boolean {
  return delayMs + shortestRoundMs < remainingMs;
}

export function outOfTime({ code, message, details }: Failure, totalTimeoutMs: number): Failure {
  return {
    code: 'step_timeout',
    message: `not done within ${formatDuration(totalTimeoutMs)}; last: ${message}`,
    details: { code, ...(details === undefined ? {} : { last: details }) },
  };
}
