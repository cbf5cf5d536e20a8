/** What was counted, by what it is of. */
export type Figures = Readonly<Record<string, number | string>>;

export interface Verdict {
  readonly figures: Figures;
  /** What does not hold; none is as it must be. */
  readonly breaches: readonly string[];
}

export function joinVerdicts(verdicts: readonly Verdict[]): Verdict {
  return {
    figures: Object.assign({}, ...verdicts.map(({ figures }) => figures)),
    breaches: verdicts.flatMap(({ breaches }) => breaches.slice(0, 20)),
  };
}

/** A figure that must not exceed what is allowed. */
export function atMost(name: string, seen: number, allowed: number): Verdict {
  const figures = { [name]: Number(seen.toFixed(1)) };
  return { figures, breaches: seen <= allowed ? [] : [`${name}: ${seen}, at most ${allowed} allowed`] };
}

/** A figure that shows that the fault was one. */
export function atLeast(name: string, seen: number, needed: number): Verdict {
  const figures = { [name]: Number(seen.toFixed(1)) };
  return { figures, breaches: seen >= needed ? [] : [`${name}: ${seen}, at least ${needed} needed`] };
}
