/**
 * Bodies of uploads on their way into a store that takes them as a whole: written to a file without a name, so that a sender
 * who is slow, or falls silent before its end, holds some space on a disk and next to no memory. The file is gone with its
 * process.
 */
import { createHash, randomUUID } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { AppError } from '../../errors/app-error.ts';
import { hasCode } from './guarded-files.ts';
import { tooLarge } from './media-faults.ts';

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
    return {
      ...received,
      read: () => readAll(file, received.size),
      close: () => file.close(),
    };
  } catch (cause) {
    await handle?.close();
    if (!hasCode(cause, ['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES'])) throw cause;
    const message = `the folder ${tmpdir()} cannot take the upload on its way into the media store`;
    throw new AppError('unavailable', message, { cause, retryAfterS: 5 });
  }
}
