/**
 * Files below a folder that others may write too, instances do, and files without a name for uploads in progress. No
 * link is followed, neither as the last part of a path nor on the way to it, because it could name any file that this
 * process may read; and nothing that is no plain file is waited for (a pipe without a writer would hold a thread).
 */

import { createHash, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { Readable } from 'node:stream';
import { AppError } from '@capstan/core/errors/app-error';
import { tooLarge } from './media-store.ts';

export function hasCode(error: unknown, codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

/** A link is as good as nothing. */
export function nullWhenMissing(error: unknown): null {
  if (hasCode(error, ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO'])) return null;
  throw error;
}

/** Null when it is missing, or reached through a link. */
export async function findFolder(root: string, folder: string): Promise<string | null> {
  const [realRoot, real] = await Promise.all(
    [root, folder].map((one) => realpath(one).catch(nullWhenMissing)),
  );
  if (realRoot == null || real == null) return null;
  return real === join(realRoot, relative(root, folder)) ? real : null;
}

/** Null when there is a link on the way. */
export async function makeFolder(root: string, folder: string): Promise<string | null> {
  await mkdir(folder, { recursive: true });
  return findFolder(root, folder);
}

const quietRead = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** As often as a file may be replaced while it is opened. */
const attempts = 20;

/** Opens a file of the folder itself; null when the path is no plain file. */
export async function openFile(root: string, file: string): Promise<FileHandle | null> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const handle = await open(file, quietRead).catch(nullWhenMissing);
    if (handle === null) return null;
    const place = await judge(root, file, handle).catch(() => 'elsewhere');
    if (place === 'here') return handle;
    await handle.close();
    if (place === 'elsewhere') return null;
  }
  return null;
}

/** A folder may be exchanged for a link and back: only what is still found at its place without one was opened there. */
async function judge(
  root: string,
  file: string,
  handle: FileHandle,
): Promise<'here' | 'replaced' | 'elsewhere'> {
  const opened = await handle.stat({ bigint: true });
  if (!opened.isFile() || (await findFolder(root, dirname(file))) === null) return 'elsewhere';
  const found = await lstat(file, { bigint: true }).catch(nullWhenMissing);
  if (found === null) return 'elsewhere';
  return found.ino === opened.ino && found.dev === opened.dev ? 'here' : 'replaced';
}

// Bodies of uploads on their way into a store that takes them as a whole: written to a file without a name, so
// that a sender who is slow, or falls silent before its end, holds some space on a disk and next to no memory. The
// file is gone with its process.

export interface Spooled {
  readonly size: number;
  /** Hex. */
  readonly sha256: string;
  /** From its beginning; once at a time. */
  read(): Readable;
  close(): Promise<void>;
}

/**
 * Writes all of `body` and leaves it open on failure, so that a server can still answer on its connection.
 *
 * @returns the SHA-256 of it, in hex @throws AppError `body_too_large`
 */
export async function receive(
  body: Readable,
  handle: FileHandle,
  limitBytes: number,
): Promise<{ readonly sha256: string; readonly size: number }> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of body.iterator({ destroyOnReturn: false })) {
    size += chunk.length;
    if (size > limitBytes) throw tooLarge(limitBytes);
    hash.update(chunk);
    await handle.appendFile(chunk);
  }
  return { sha256: hash.digest('hex'), size };
}

async function openNameless(): Promise<FileHandle> {
  const file = join(tmpdir(), `capstan-upload-${randomUUID()}`);
  const handle = await open(file, 'wx+', 0o600);
  await rm(file);
  return handle;
}

const chunkBytes = 262_144;

/** With its end, from which lib-storage counts the parts. */
function readAll(file: FileHandle, size: number): Readable {
  if (size === 0) return Readable.from([]);
  return file.createReadStream({ start: 0, end: size - 1, autoClose: false, highWaterMark: chunkBytes });
}

/** @throws AppError `body_too_large`, `unavailable` when there is no room for it here */
export async function spool(body: Readable, limitBytes: number): Promise<Spooled> {
  let handle: FileHandle | undefined;
  try {
    const file = await openNameless();
    handle = file;
    const received = await receive(body, file, limitBytes);
    return { ...received, read: () => readAll(file, received.size), close: () => file.close() };
  } catch (cause) {
    await handle?.close();
    if (!hasCode(cause, ['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES'])) throw cause;
    const message = `the folder ${tmpdir()} cannot take the upload on its way into the media store`;
    throw new AppError('unavailable', message, { cause, retryAfterS: 5 });
  }
}
