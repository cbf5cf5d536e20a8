/**
 * A process's observations of an instance by its calls. A timeout counts against it in proportion to the time that the
 * instance was given: some callers allow less time than any call takes, others more than the slowest one needs.
 */
import { addLength, type Lengths } from '../money/holds.ts';
import type { InstanceSnapshot } from './types.ts';

/**
 * A process's observations of an instance, folded into weights, so that its report merges into moving averages that
 * other processes update too: new = kept × old + Σ weight × seen.
 */
export interface ObservedCalls {
  /** Durations of successful calls in order, ms, and their costs, USD. Calls before the last 50 have no weight. */
  readonly durations: readonly number[];
  readonly costs: readonly number[];
  /** How many of them used so many units (core/money/holds.ts). */
  readonly lengths: Lengths;
  readonly successes: number;
  readonly failures: number;
  /** Factor by which earlier counts of successes and failures decay. */
  readonly decay: number;
}

const alpha = 0.2;
const countDecay = 0.98;
const mostCalls = 50;

export const noCalls: ObservedCalls = {
  durations: [],
  costs: [],
  lengths: [],
  successes: 0,
  failures: 0,
  decay: 1,
};

export interface ObservedCall {
  readonly durationMs: number;
  readonly costUsd: number;
  /** What its cost has grown by. Default: it does not grow. */
  readonly units?: number | undefined;
  readonly ok: boolean;
  /** Weight of a failure, at most 1. Default: 1. */
  readonly weight?: number;
}

export function observeCall(
  seen: ObservedCalls,
  { durationMs, costUsd, units, ok, weight = 1 }: ObservedCall,
): ObservedCalls {
  return {
    durations: ok ? [...seen.durations, durationMs].slice(-mostCalls) : seen.durations,
    costs: ok ? [...seen.costs, costUsd].slice(-mostCalls) : seen.costs,
    lengths: ok && units !== undefined ? addLength(seen.lengths, units) : seen.lengths,
    successes: seen.successes * countDecay + (ok ? 1 : 0),
    failures: seen.failures * countDecay + (ok ? 0 : weight),
    decay: seen.decay * countDecay,
  };
}

/** Weights of `count` observations in order, and of the average before them; their sum is 1. */
export function averageWeights(count: number): {
  readonly kept: number;
  readonly weights: readonly number[];
} {
  return {
    kept: (1 - alpha) ** count,
    weights: Array.from({ length: count }, (_, at) => alpha * (1 - alpha) ** (count - 1 - at)),
  };
}

/** This multiple of the average exceeds an instance's slow calls. */
const slowCall = 4;
/** A long call, for an instance without data. */
const longMs = 30_000;

/**
 * @param timeoutMs the time within which it did not answer
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
