/** Digests of files that nobody has recorded, measured once for as long as the file stays what it is. */
import { createHash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { LRUCache } from 'lru-cache';

export interface FileDigests {
  /** SHA-256 in hex. */
  of(handle: FileHandle, stats: BigIntStats): Promise<string>;
}

const maxKnown = 10_000;

/** Names one state of one file: written to in place it gets another time, copied another number. */
export function identityOf(stats: BigIntStats): string {
  return `${stats.ino}-${stats.size}-${stats.mtimeNs}`;
}

export function createFileDigests(): FileDigests {
  const known = new LRUCache<string, Promise<string>>({ max: maxKnown });
  return {
    of: async (handle, stats) => {
      const key = `${stats.dev}-${identityOf(stats)}`;
      const measured = known.get(key);
      if (measured !== undefined) return measured;
      const measuring = measure(handle);
      known.set(key, measuring);
      measuring.catch(() => known.delete(key));
      const digest = await measuring;
      if (identityOf(await handle.stat({ bigint: true })) !== identityOf(stats)) known.delete(key);
      return digest;
    },
  };
}

async function measure(handle: FileHandle): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of handle.createReadStream({ start: 0, autoClose: false })) hash.update(chunk);
  return hash.digest('hex');
}
