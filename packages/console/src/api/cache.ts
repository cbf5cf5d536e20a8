import type { CacheEntry, CacheSummary } from '@capstan/core/contracts/cache';
import { queryOptions } from '@tanstack/react-query';
import { askPlainly } from './client.ts';

export function cacheSummaryQuery() {
  return queryOptions({
    queryKey: ['cache', 'summary'],
    queryFn: () => askPlainly<CacheSummary>('/v1/cache/summary'),
  });
}

interface CachePage {
  readonly items: readonly CacheEntry[];
  readonly next_cursor: string | null;
}

/** Results of steps, newest first. */
export function cachedQuery(capability: string | undefined, cursor = '') {
  const query = new URLSearchParams({ limit: '50' });
  if (capability !== undefined) query.set('capability', capability);
  if (cursor !== '') query.set('cursor', cursor);
  return queryOptions({
    queryKey: ['cache', 'list', capability ?? '', cursor],
    queryFn: () => askPlainly<CachePage>(`/v1/cache?${query}`),
  });
}

export interface CacheChoice {
  readonly key?: string;
  readonly capability?: string;
}

/** Without a name, all of the project. */
export function forgetCached(which: CacheChoice): Promise<{ readonly removed: number }> {
  return askPlainly(`/v1/cache?${new URLSearchParams({ ...which })}`, { method: 'DELETE' });
}
