/** The other names of projects for models, as this process knows them. */
import { LRUCache } from 'lru-cache';
import type { Db } from '../db/connect.ts';
import { listModelAliases } from '../db/instance/model-alias.ts';

/** The aliases of projects that make calls. One is read at most every 5 s, so a call rarely waits for it. */
export type AliasBook = LRUCache<string, ReadonlyMap<string, string>>;

const trustMs = 5_000;

/** While the database is away, the last known aliases hold. */
export function createAliasBook(db: Db): AliasBook {
  return new LRUCache<string, ReadonlyMap<string, string>>({
    max: 1_000,
    ttl: trustMs,
    allowStaleOnFetchRejection: true,
    noDeleteOnFetchRejection: true,
    fetchMethod: async (projectId) => {
      const rows = await listModelAliases(db, projectId);
      return new Map(rows.map(({ name, capability }) => [name, capability]));
    },
  });
}
