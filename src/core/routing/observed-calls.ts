/**
 * What a process saw of an instance by its calls. What a time-out says against it counts in proportion to the time
 * that the instance was given: some callers give less time than any call there takes, others more than the slowest
 * one needs.
 */
import type { InstanceSnapshot } from './types.ts';

/**
 * What a process saw of an instance, folded into weights, so that its report can be merged into moving averages
 * that other processes move as well: new = kept × old + Σ weight × seen.
 */
export interface ObservedCalls {
  /** Durations of successful calls in order, ms, and what they cost, USD; older ones than the last 50 weigh nothing. */
  readonly durations: readonly number[];
  readonly costs: readonly number[];
  readonly successes: number;
  readonly failures: number;
  /** Factor by which earlier counts of successes and failures decay. */
  readonly decay: number;
}

const alpha = 0.2;
const countDecay = 0.98;
const mostCalls = 50;

export const noCalls: ObservedCalls = { durations: [], costs: [], successes: 0, failures: 0, decay: 1 };

export interface ObservedCall {
  readonly durationMs: number;
  readonly costUsd: number;
  readonly ok: boolean;
  /** How much a failure counts, at most 1. Default: 1. */
  readonly weight?: number;
}

export function observeCall(
  seen: ObservedCalls,
  { durationMs, costUsd, ok, weight = 1 }: ObservedCall,
): ObservedCalls {
  return {
    durations: ok ? [...seen.durations, durationMs].slice(-mostCalls) : seen.durations,
    costs: ok ? [...seen.costs, costUsd].slice(-mostCalls) : seen.costs,
    successes: seen.successes * countDecay + (ok ? 1 : 0),
    failures: seen.failures * countDecay + (ok ? 0 : weight),
    decay: seen.decay * countDecay,
  };
}

/** Weights of `count` observations in order, and of the average before them; together 1. */
export function averageWeights(count: number): {
  readonly kept: number;
  readonly weights: readonly number[];
} {
  return {
    kept: (1 - alpha) ** count,
    weights: Array.from({ length: count }, (_, at) => alpha * (1 - alpha) ** (count - 1 - at)),
  };
}

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
