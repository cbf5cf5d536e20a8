import type { CachedOfCapability } from '@capstan/core/contracts/cache';

/** `3 results, 2 answers`; `nothing` without any. */
export function describeCached({
  results,
  answers,
}: Pick<CachedOfCapability, 'results' | 'answers'>): string {
  const parts = [
    ...(results === 0 ? [] : [`${results} ${results === 1 ? 'result' : 'results'}`]),
    ...(answers === 0 ? [] : [`${answers} ${answers === 1 ? 'answer' : 'answers'}`]),
  ];
  return parts.length === 0 ? 'nothing' : parts.join(', ');
}

export interface CacheTotal {
  readonly results: number;
  readonly answers: number;
  readonly hits: number;
  readonly saved_usd: number;
}

export function sumCached(items: readonly CachedOfCapability[]): CacheTotal {
  const sum = (pick: (item: CachedOfCapability) => number): number =>
    items.reduce((total, item) => total + pick(item), 0);
  return {
    results: sum(({ results }) => results),
    answers: sum(({ answers }) => answers),
    hits: sum(({ hits }) => hits),
    saved_usd: sum(({ saved_usd }) => saved_usd),
  };
}
