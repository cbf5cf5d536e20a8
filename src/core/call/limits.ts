/** What bounds a routed call, whoever makes it. Durations in milliseconds. */
import type { RetrySettings } from './retry-policy.ts';

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
