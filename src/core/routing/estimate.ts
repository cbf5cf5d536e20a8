/** What a call on an instance would take and cost. */
import { toNanoUsd } from '../money/nano-usd.ts';
import { worstCase } from '../money/reservation.ts';
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
type Limits = Pick<RouteRequest, 'ceilingUsd' | 'runCeilingUsd' | 'timeoutMs'>;

/** The lower of two ceilings, of which null is none. */
export function lowestCeiling(one: number | null, other: number | null): number | null {
  return one === null ? other : other === null ? one : Math.min(one, other);
}

/** A ceiling on a rate per second is a limit on time, so that it is a true ceiling. Whole ms, at least 1. */
export function enforcedTimeout({ cost_type, rate_usd }: Price, limits: Limits): number {
  const ceilingUsd = lowestCeiling(limits.ceilingUsd, limits.runCeilingUsd ?? null);
  return ceilingUsd === null || cost_type !== 'per_second' || rate_usd === 0
    ? limits.timeoutMs
    : Math.max(1, Math.min(limits.timeoutMs, Math.floor((ceilingUsd / rate_usd) * 1_000)));
}

/** The most that a call can cost: USD, rounded up to a nano-USD. A double is exact enough to rule out what cannot fit. */
export function worstCaseUsd(instance: Price, limits: Limits): number {
  const nano =
    instance.cost_type === 'per_call'
      ? instance.rate_usd * 1e9
      : instance.rate_usd * enforcedTimeout(instance, limits) * 1e6;
  return Math.ceil(nano * (1 - 1e-15)) / 1e9;
}

/**
 * What a success is likely to cost, USD. Where an instance says itself what its calls cost, its price is an upper bound,
 * and the average of its calls so far is nearer to the truth, if it is known.
 */
export function likelyCost(
  instance: Price & Pick<InstanceSnapshot, 'settle' | 'mean_cost_usd'>,
  limits: Limits,
  costUsd: number,
): number {
  const { settle, mean_cost_usd } = instance;
  if (settle !== 'reported' || mean_cost_usd === null) return costUsd;
  return Math.min(mean_cost_usd, worstCaseUsd(instance, limits));
}

/** What a call reserves, USD; the claim counts again in integers. @param costUsd what is expected */
export function reservedUsd(instance: Price, limits: Limits, costUsd: number): number {
  const worstUsd = worstCaseUsd(instance, limits);
  return isDearerThanRun(limits, costUsd) ? Math.max(worstUsd, costUsd) : worstUsd;
}

/**
 * What a call reserves, nano-USD: its worst case. One that is expected to cost more than its whole run may would be cut
 * short by the run's ceiling: it reserves what is expected, so that the run's budget refuses it and the step waits for a raise.
 */
export function reservationOf(instance: Price, limits: Limits, costUsd: number): bigint {
  if (isDearerThanRun(limits, costUsd)) return toNanoUsd(costUsd);
  return worstCase(instance, enforcedTimeout(instance, limits));
}

function isDearerThanRun({ runCeilingUsd = null }: Limits, costUsd: number): boolean {
  return runCeilingUsd !== null && costUsd > runCeilingUsd;
}
