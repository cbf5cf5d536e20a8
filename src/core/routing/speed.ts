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
