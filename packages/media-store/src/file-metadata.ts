/**
 * Keeps the content type and the SHA-256 of a stored file in a sidecar beside it: `clip.mp4~meta.json`. `~` is no
 * letter of the media grammar, so a sidecar never collides with an object.
 *
 * A record names the exact file it describes (inode, size, modification time). The sidecar is replaced before the file
 * and keeps the record of the file still visible, so a reader finds a matching record at every moment. A file without
 * one (put there by hand, restored from a copy) is measured instead of believed; a record of the same digest then still
 * gives its type.
 */
import { createHash, randomUUID } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { type FileHandle, lstat, rename, rm, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { openFile } from './guarded-files.ts';
import type { DescribedObject } from './media-store.ts';

// Digests of files without a record, measured once for as long as the file stays what it is.

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
  const known = new Map<string, Promise<string>>();
  return {
    of: async (handle, stats) => {
      const key = `${stats.dev}-${identityOf(stats)}`;
      const measured = known.get(key);
      if (measured !== undefined) return measured;
      const measuring = measure(handle);
      if (known.size >= maxKnown) known.clear();
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

const Record = z.object({ identity: z.string(), content_type: z.string(), sha256: z.string() });
type Record = z.infer<typeof Record>;

/** A media type is a header, and there are two records at most. */
const sidecarBytes = 65_536;

export function sidecarOf(file: string): string {
  return `${file}~meta.json`;
}

async function readRecords(root: string, file: string): Promise<readonly Record[]> {
  const handle = await openFile(root, sidecarOf(file));
  if (handle === null) return [];
  try {
    if ((await handle.stat()).size > sidecarBytes) return [];
    return z.array(Record).parse(JSON.parse(await handle.readFile('utf8')));
  } catch {
    return [];
  } finally {
    await handle.close();
  }
}

interface FilePlace {
  readonly root: string;
  readonly file: string;
}

/** @param handle of a plain file, which stays open */
export async function describeFile(
  { root, file }: FilePlace,
  handle: FileHandle,
  digests: FileDigests,
): Promise<DescribedObject> {
  const stats = await handle.stat({ bigint: true });
  const identity = identityOf(stats);
  const records = await readRecords(root, file);
  const own = records.find((record) => record.identity === identity);
  const sha256 = own?.sha256 ?? (await digests.of(handle, stats));
  const known = own ?? records.find((record) => record.sha256 === sha256);
  return {
    size: Number(stats.size),
    content_type: known?.content_type ?? 'application/octet-stream',
    sha256,
    etag: identity,
    modified_at: stats.mtime,
  };
}

/** Records what the file behind `incoming` is; to be called just before it is renamed to `file`. */
export async function announceFile(
  { root, file }: FilePlace,
  incoming: BigIntStats,
  facts: { readonly content_type: string; readonly sha256: string },
): Promise<void> {
  const visible = await lstat(file, { bigint: true }).then(identityOf, () => null);
  const kept = (await readRecords(root, file)).filter((record) => record.identity === visible);
  const temporary = `${sidecarOf(file)}~${randomUUID()}`;
  try {
    const records = [{ identity: identityOf(incoming), ...facts }, ...kept];
    await writeFile(temporary, JSON.stringify(records), { flag: 'wx' });
    await rename(temporary, sidecarOf(file));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
