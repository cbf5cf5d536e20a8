/**
 * What a time-out says against an instance. Some callers give less time than any call there takes, others more than the
 * slowest one needs: so it counts in proportion to the time that the instance was given.
 */
import type { InstanceSnapshot } from './types.ts';

/** So many times its average is more than its slow calls take. */
const slowCall = 4;
/** For an instance of which nothing is known, this is long. */
const longMs = 30_000;

/**
 * @param timeoutMs the time that it did not answer in
 * @param priorMs duration assumed for an instance without a call of its own
 * @returns above 0; 1 counts as a fault does
 */
export function weightOfTimeout(
  timeoutMs: number,
  { duration_ms }: Pick<InstanceSnapshot, 'duration_ms'>,
  priorMs: number,
): number {
  const fairMs = duration_ms === null ? Math.min(longMs, slowCall * priorMs) : slowCall * duration_ms;
  return Math.min(1, timeoutMs / fairMs);
}
