/** What a call on an instance would take and cost. */
import type { InstanceSnapshot, RouteRequest } from './types.ts';

/** Assumed when neither the instance nor its capability has finished a call. */
const priorDurationMs = 30_000;

/** The duration assumed for instances without a call of their own: the median of the others, ms. */
export function priorDuration(instances: readonly Pick<InstanceSnapshot, 'duration_ms'>[]): number {
  const known = instances.flatMap(({ duration_ms }) => (duration_ms === null ? [] : [duration_ms]));
  return known.sort((a, b) => a - b)[Math.floor(known.length / 2)] ?? priorDurationMs;
}

/** Time until a call that joins `depth` others now would end. */
export function expectedWait(instance: InstanceSnapshot, depth: number, priorMs: number): number {
  const durationMs = instance.duration_ms ?? priorMs;
  const { max_concurrency } = instance;
  return durationMs * (1 + Math.floor(depth / max_concurrency));
}

/** A long call, about the 90th percentile. */
export function longCallMs(durationMs: number, deviationMs: number | null): number {
  return durationMs + 1.6 * (deviationMs ?? 0);
}

/** USD. A rate per second counts with a long call, so that luck is not rewarded. */
export function expectedCost(instance: InstanceSnapshot, priorMs: number): number {
  switch (instance.cost_type) {
    case 'free':
      return 0;
    case 'per_call':
      return instance.rate_usd;
    case 'per_second':
      return (instance.rate_usd * longCallMs(instance.duration_ms ?? priorMs, instance.deviation_ms)) / 1_000;
  }
}

/**
 * Mean of the success probability under a Beta(9, 1) prior, at least 0.05. No more than the prior's 0.9: else those
 * that have succeeded before would look cheaper than their equals that were never asked, and stay the only ones.
 */
export function expectedSuccess({
  success_count,
  failure_count,
}: Pick<InstanceSnapshot, 'success_count' | 'failure_count'>): number {
  const mean = (success_count + 9) / (success_count + failure_count + 10);
  return Math.min(0.9, Math.max(0.05, mean));
}

type Price = Pick<InstanceSnapshot, 'cost_type' | 'rate_usd'>;
type Limits = Pick<RouteRequest, 'ceilingUsd' | 'timeoutMs'>;

/** A ceiling on a rate per second is a limit on time, so that it is a true ceiling. Whole ms, at least 1. */
export function enforcedTimeout({ cost_type, rate_usd }: Price, { ceilingUsd, timeoutMs }: Limits): number {
  return ceilingUsd === null || cost_type !== 'per_second' || rate_usd === 0
    ? timeoutMs
    : Math.max(1, Math.min(timeoutMs, Math.floor((ceilingUsd / rate_usd) * 1_000)));
}

/**
 * The most that a call can cost, and what it reserves: USD, rounded up to a nano-USD. A double is exact enough to
 * rule out what cannot fit; the claim counts again in integers.
 */
export function worstCaseUsd(instance: Price, limits: Limits): number {
  const nano =
    instance.cost_type === 'per_call'
      ? instance.rate_usd * 1e9
      : instance.rate_usd * enforcedTimeout(instance, limits) * 1e6;
  return Math.ceil(nano * (1 - 1e-15)) / 1e9;
}
