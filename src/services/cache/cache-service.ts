/** Results that are kept, looked at and removed by people. Files belong to jobs and stay. */
import type { CacheEntry, CacheQuery, CacheRemoval } from '../../contracts/cache.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import {
  type ListedResultRow,
  listResults,
  type ResultPlace,
  removeResults,
} from '../../db/cache/cache-list.ts';
import type { Db } from '../../db/connect.ts';
import type { Caller } from '../access/caller.ts';
import { decodeCursor, refuseCursor, toPage } from '../cursor.ts';

export interface CacheService {
  /** Newest first. @throws AppError `request_invalid` for a cursor of another list */
  list(caller: Caller, query: CacheQuery): Promise<{ items: CacheEntry[]; next_cursor: string | null }>;
  remove(caller: Caller, which: CacheRemoval): Promise<{ removed: number }>;
}

const place = /^([0-9T :.+-]{10,40}) ([0-9a-f]{64})$/;

function readPlace(cursor: string): ResultPlace {
  const [, at, key] = place.exec(decodeCursor(cursor)) ?? [];
  if (at === undefined || key === undefined || Number.isNaN(Date.parse(at))) throw refuseCursor();
  return { place: at, key };
}

function toEntry({ item, cost_nano, place: _, ...row }: ListedResultRow): CacheEntry {
  return {
    ...row,
    ...(item === 0 ? {} : { item }),
    cost_usd: fromNanoUsd(BigInt(cost_nano)),
    stored_at: row.stored_at.toISOString(),
    expires_at: row.expires_at.toISOString(),
  };
}

export function createCacheService(db: Db): CacheService {
  return {
    list: async ({ project_id }, { limit, cursor, ...which }) => {
      const after = cursor === undefined ? null : readPlace(cursor);
      const rows = await listResults(db, project_id, { ...which, after, limit: limit + 1 });
      return toPage(rows, limit, { key: (row) => `${row.place} ${row.key}`, item: toEntry });
    },
    remove: async ({ project_id }, which) => ({ removed: await removeResults(db, project_id, which) }),
  };
}
