function sort(values: readonly number[]): readonly number[] {
  if (values.length === 0) throw new Error('a statistic of nothing');
  return [...values].sort((a, b) => a - b);
}

/** @throws Error for an empty list */
export function median(values: readonly number[]): number {
  const sorted = sort(values);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2;
}

/** The value that 99 of 100 do not exceed. @throws Error for an empty list */
export function percentile99(values: readonly number[]): number {
  return sort(values)[Math.ceil(values.length * 0.99) - 1] ?? 0;
}
