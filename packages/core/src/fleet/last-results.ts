/** Health at a glance: how the last runs of a pipeline, or the last calls of an instance, have ended. */

export interface LastResult {
  /** Null while it is open. */
  readonly isGood: boolean | null;
  readonly durationMs: number | null;
  readonly costUsd: number;
}

export interface ResultSums {
  readonly ended: number;
  readonly succeeded: number;
  /** Of those that succeeded; null without any. */
  readonly p50_ms: number | null;
  readonly p50_usd: number | null;
}

/** The middle one, or the mean of the two in the middle; null for none. */
function medianOf(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(half) - 1], sorted[Math.floor(half)]];
  return low === undefined || high === undefined ? null : (low + high) / 2;
}

export function sumResults(results: readonly LastResult[]): ResultSums {
  const good = results.filter(({ isGood }) => isGood === true);
  return {
    ended: results.filter(({ isGood }) => isGood !== null).length,
    succeeded: good.length,
    p50_ms: medianOf(good.flatMap(({ durationMs }) => durationMs ?? [])),
    p50_usd: medianOf(good.map(({ costUsd }) => costUsd)),
  };
}
