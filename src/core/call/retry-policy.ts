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
