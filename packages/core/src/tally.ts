/** Sums by name. A name with the sum 0 is removed, so that short-lived names take no memory. */
export interface Tally {
  /** 0 for an unknown name. */
  of(name: string): number;
  add(name: string, by: number): void;
  readonly entries: ReadonlyMap<string, number>;
}

export function createTally(): Tally {
  const sums = new Map<string, number>();
  const of = (name: string): number => sums.get(name) ?? 0;
  return {
    of,
    add: (name, by) => {
      const sum = of(name) + by;
      if (sum === 0) sums.delete(name);
      else sums.set(name, sum);
    },
    entries: sums,
  };
}
