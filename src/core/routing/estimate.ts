/** What a call on an instance would take and cost. */
import type { InstanceSnapshot } from './types.ts';

/** Assumed when neither the instance nor its capability has finished a call. */
const priorDurationMs = 30_000;

const median = (values: readonly number[]): number | null => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? null;
};

/** The duration assumed for instances without a call of their own: the median of the others. */
export const priorDuration = (instances: readonly InstanceSnapshot[]): number =>
  median(instances.flatMap(({ duration_ms }) => (duration_ms === null ? [] : [duration_ms]))) ??
  priorDurationMs;

export const expectedDuration = (instance: InstanceSnapshot, prior: number): number =>
  instance.duration_ms ?? prior;

/** Time until a call that joins the queue now would end. */
export const expectedWait = (instance: InstanceSnapshot, prior: number): number => {
  const depth = instance.held + instance.reported_extra;
  return expectedDuration(instance, prior) * (1 + Math.floor(depth / instance.max_concurrency));
};

/** USD. A rate per second counts with a long call (about the 90th percentile), so that luck is not rewarded. */
export const expectedCost = (instance: InstanceSnapshot, prior: number): number => {
  switch (instance.cost_type) {
    case 'free':
      return 0;
    case 'per_call':
      return instance.rate_usd;
    case 'per_second': {
      const longMs = expectedDuration(instance, prior) + 1.6 * (instance.deviation_ms ?? 0);
      return (instance.rate_usd * longMs) / 1_000;
    }
  }
};

/** Mean of the success probability under a Beta(9, 1) prior. */
export const expectedSuccess = ({ success_count, failure_count }: InstanceSnapshot): number =>
  (success_count + 9) / (success_count + failure_count + 10);
