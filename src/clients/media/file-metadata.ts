/**
 * What a stored file is (content type, sha-256), in a sidecar beside it: `clip.mp4~meta.json`. `~` is no letter of
 * the media grammar, so a sidecar never collides with an object.
 * A record names the exact file it describes (inode, size, modification time). The sidecar is replaced before the
 * file and keeps the record of the file still visible, so a reader finds a matching record at every moment. A file
 * without one (put there by hand, restored from a copy) is measured instead of believed.
 */
import { createHash, randomUUID } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { type FileHandle, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import type { StoredObject } from './media-store.ts';

const Record = z.object({ identity: z.string(), content_type: z.string(), sha256: z.string() });
type Record = z.infer<typeof Record>;

export function sidecarOf(file: string): string {
  return `${file}~meta.json`;
}

function identityOf(stats: BigIntStats): string {
  return `${stats.ino}-${stats.size}-${stats.mtimeNs}`;
}

async function readRecords(file: string): Promise<readonly Record[]> {
  try {
    return z.array(Record).parse(JSON.parse(await readFile(sidecarOf(file), 'utf8')));
  } catch {
    return [];
  }
}

async function measure(handle: FileHandle): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of handle.createReadStream({ start: 0, autoClose: false })) hash.update(chunk);
  return hash.digest('hex');
}

/** Null when the handle is not a file. */
export async function describeFile(file: string, handle: FileHandle): Promise<StoredObject | null> {
  const stats = await handle.stat({ bigint: true });
  if (!stats.isFile()) return null;
  const identity = identityOf(stats);
  const known = (await readRecords(file)).find((record) => record.identity === identity);
  return {
    size: Number(stats.size),
    content_type: known?.content_type ?? 'application/octet-stream',
    sha256: known?.sha256 ?? (await measure(handle)),
    modified_at: stats.mtime,
  };
}

/** Records what the file behind `incoming` is; to be called just before it is renamed to `file`. */
export async function announceFile(
  file: string,
  incoming: BigIntStats,
  facts: { readonly content_type: string; readonly sha256: string },
): Promise<void> {
  const visible = await stat(file, { bigint: true }).then(identityOf, () => null);
  const kept = (await readRecords(file)).filter((record) => record.identity === visible);
  const temporary = `${sidecarOf(file)}~${randomUUID()}`;
  try {
    await writeFile(temporary, JSON.stringify([{ identity: identityOf(incoming), ...facts }, ...kept]));
    await rename(temporary, sidecarOf(file));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
