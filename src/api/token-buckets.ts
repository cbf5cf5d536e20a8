/**
 * Token buckets: `burst` requests at once, then `perSecond` of them. In the memory of one process; of 10,000 holders
 * the ones that asked last are remembered, and who is forgotten begins with a full bucket.
 */
import { LRUCache } from 'lru-cache';

export interface TokenRate {
  readonly perSecond: number;
  readonly burst: number;
}

export interface TokenBuckets {
  /** Takes one token. @returns 0, or the seconds until there is one; then nothing was taken */
  take(holder: string): number;
}

/** @param now milliseconds of a clock that does not go back */
export function createTokenBuckets({ perSecond, burst }: TokenRate, now: () => number): TokenBuckets {
  const buckets = new LRUCache<string, { tokens: number; at: number }>({ max: 10_000 });
  return {
    take: (holder) => {
      const at = now();
      const known = buckets.get(holder) ?? { tokens: burst, at };
      const tokens = Math.min(burst, known.tokens + ((at - known.at) / 1_000) * perSecond);
      buckets.set(holder, { tokens: tokens >= 1 ? tokens - 1 : tokens, at });
      return tokens >= 1 ? 0 : (1 - tokens) / perSecond;
    },
  };
}
