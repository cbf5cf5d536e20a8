/** What keys may use, and have used lately. */
import type { Key } from '@capstan/core/contracts/access';
import type { CostSeries } from '@capstan/core/contracts/money';

/** `60 requests, 50,000 tokens a minute`; null: the limits of every key. */
export function describeRates({
  requests_per_minute,
  tokens_per_minute,
}: Pick<Key, 'requests_per_minute' | 'tokens_per_minute'>): string | null {
  const rates = [
    [requests_per_minute, 'request'],
    [tokens_per_minute, 'token'],
  ] as const;
  const given = rates.flatMap(([rate, unit]) =>
    rate === null ? [] : [`${rate.toLocaleString('en-US')} ${unit}${rate === 1 ? '' : 's'}`],
  );
  return given.length === 0 ? null : `${given.join(', ')} a minute`;
}

export interface KeyUse {
  readonly usd: number;
  readonly calls: number;
  /** The day of its last call; null: none. */
  readonly last: string | null;
}

/** By id. A key that is not named made no call, unless the series has others together. @param costs by key */
export function readUses({ series }: Pick<CostSeries, 'series'>): (keyId: string) => KeyUse | null {
  const uses = new Map(
    series.map(({ name, usd, calls, points }) => [name, { usd, calls, last: points.at(-1)?.[0] ?? null }]),
  );
  const isWhole = series.every(({ is_rest }) => is_rest !== true);
  return (keyId) => uses.get(keyId) ?? (isWhole ? { usd: 0, calls: 0, last: null } : null);
}

/** A day of the browser's calendar as the moment at which it begins; undefined: the key does not expire. */
export function readExpiry(day: string): string | undefined {
  return day === '' ? undefined : new Date(`${day}T00:00`).toISOString();
}

/** Undefined: the limits of every key. */
export function readRate(text: string): number | undefined {
  return text === '' ? undefined : Number(text);
}
