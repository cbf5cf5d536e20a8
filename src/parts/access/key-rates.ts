/**
 * The rates of keys, as buckets in the memory of one process with a burst of one minute. It keeps the 10,000 keys that
 * were used last; a dropped one starts again with a full bucket.
 *
 * R1 A key draws on its own bucket and on those of the keys above it, so a key gains nothing by making others. R2 What
 * was used is charged even if a bucket becomes negative, down to five minutes of its rate: whatever was counted, the
 * key works again after that.
 */

import type { KeyRate } from '@capstan/core/call/caller';
import { LRUCache } from 'lru-cache';
import type { KeyRates, RatesInForce } from '../../db/access/api-key.ts';

/** The rates of a key and of the keys above it; those without a limit are left out. */
export interface HolderRates {
  readonly requests: readonly KeyRate[];
  readonly tokens: readonly KeyRate[];
}

export function toRates(rows: readonly RatesInForce[]): HolderRates {
  const of = (rate: keyof KeyRates): KeyRate[] =>
    rows.flatMap(({ key_id, [rate]: per_minute }) => (per_minute === null ? [] : [{ key_id, per_minute }]));
  return { requests: of('requests_per_minute'), tokens: of('tokens_per_minute') };
}

/** A bucket that is empty. */
export interface EmptyBucket extends KeyRate {
  /** Seconds until it has a whole token again. */
  readonly waitS: number;
}

export interface KeyBuckets {
  /**
   * Takes `count` from all buckets. @returns the one that is empty for the longest time, if any; then it took nothing
   */
  take(rates: readonly KeyRate[], count: number): EmptyBucket | null;
  /** Takes what was used (R2). */
  debit(rates: readonly KeyRate[], count: number): void;
}

const mostDebtMinutes = 5;

interface FilledBucket {
  tokens: number;
  at: number;
}

/** @param now milliseconds of a monotonic clock */
export function createKeyBuckets(now: () => number): KeyBuckets {
  const buckets = new LRUCache<string, FilledBucket>({ max: 10_000 });
  const fill = ({ key_id, per_minute }: KeyRate): FilledBucket => {
    const at = now();
    const known = buckets.get(key_id) ?? { tokens: per_minute, at };
    const gained = ((at - known.at) / 60_000) * per_minute;
    const bucket = { tokens: Math.min(per_minute, known.tokens + gained), at };
    buckets.set(key_id, bucket);
    return bucket;
  };
  const findEmpty = (rates: readonly KeyRate[]): EmptyBucket | null => {
    let longest: EmptyBucket | null = null;
    for (const rate of rates) {
      const { tokens } = fill(rate);
      const waitS = tokens < 1 ? ((1 - tokens) / rate.per_minute) * 60 : 0;
      if (waitS > (longest?.waitS ?? 0)) longest = { ...rate, waitS };
    }
    return longest;
  };
  return {
    take: (rates, count) => {
      const empty = findEmpty(rates);
      if (empty === null && count > 0) for (const rate of rates) fill(rate).tokens -= count;
      return empty;
    },
    debit: (rates, count) => {
      for (const rate of rates) {
        const bucket = fill(rate);
        bucket.tokens = Math.max(bucket.tokens - count, -mostDebtMinutes * rate.per_minute);
      }
    },
  };
}

export function describeEmpty({ per_minute, waitS }: EmptyBucket, what: string): string {
  return `${what}: ${per_minute} a minute are allowed; try again in ${waitS.toFixed(2)} s`;
}
