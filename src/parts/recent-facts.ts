/** Facts of projects as this process knows them: read at most every 5 s, so that a call rarely waits for them. */
import { LRUCache } from 'lru-cache';

export interface RecentFacts<Fact> {
  /** The fact at once, where it was read lately. While the database is away, what was last known holds. */
  of(projectId: string): Fact | Promise<Fact>;
  /** It has changed. */
  forget(projectId: string): void;
}

const trustMs = 5_000;

/** @param now in ms, from any beginning */
export function createRecentFacts<Fact>(
  read: (projectId: string) => Promise<Fact>,
  now = () => performance.now(),
): RecentFacts<Fact> {
  const known = new LRUCache<string, { readonly fact: Fact }>({
    max: 1_000,
    ttl: trustMs,
    perf: { now },
    ttlResolution: 0,
    noDeleteOnStaleGet: true,
    allowStaleOnFetchRejection: true,
    noDeleteOnFetchRejection: true,
    fetchMethod: async (projectId) => ({ fact: await read(projectId) }),
  });
  const refresh = async (projectId: string): Promise<Fact> => {
    const found = await known.fetch(projectId);
    return found === undefined ? read(projectId) : found.fact; // forgotten on its way
  };
  return {
    of: (projectId) => known.get(projectId)?.fact ?? refresh(projectId),
    forget: (projectId) => {
      known.delete(projectId);
    },
  };
}
