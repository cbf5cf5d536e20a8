/**
 * A media store in one folder: `<directory>/<job_id>/<file>`, each object a plain file that any tool can open.
 * An upload is written to `~incoming` and renamed into place, so it is visible whole or not at all. Names outside
 * the media grammar (sidecars, uploads under way) are never objects.
 */
import { createHash, randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, rename, rm, stat, unlink } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import type { Readable } from 'node:stream';
import { formatMediaReference, type MediaPath, parseMediaPath } from '../../contracts/media.ts';
import { AppError } from '../../errors/app-error.ts';
import { announceFile, describeFile, sidecarOf } from './file-metadata.ts';
import type { MediaStore, StoredObject } from './media-store.ts';

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');
}

function nullWhenMissing(error: unknown): null {
  if (isMissing(error)) return null;
  throw error;
}

/** Writes all of `body` and leaves it open on failure, so that a server can still answer on its connection. */
async function receive(body: Readable, handle: FileHandle, limitBytes: number): Promise<string> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of body.iterator({ destroyOnReturn: false })) {
    size += chunk.length;
    if (size > limitBytes) throw new AppError('body_too_large', `more than the allowed ${limitBytes} bytes`);
    hash.update(chunk);
    await handle.appendFile(chunk);
  }
  return hash.digest('hex');
}

async function prepareTarget(target: string, path: MediaPath): Promise<void> {
  const clash = (cause?: unknown) =>
    new AppError('state_conflict', `${formatMediaReference(path)} is both a file and a folder of files`, {
      cause,
    });
  try {
    await mkdir(dirname(target), { recursive: true });
  } catch (error) {
    const isClash =
      error instanceof Error && 'code' in error && /^(EEXIST|ENOTDIR)$/.test(String(error.code));
    throw isClash ? clash(error) : error;
  }
  const existing = await stat(target).catch(nullWhenMissing);
  if (existing?.isDirectory()) throw clash();
}

async function describe(file: string): Promise<StoredObject | null> {
  const handle = await open(file, 'r').catch(nullWhenMissing);
  if (handle === null) return null;
  try {
    return await describeFile(file, handle);
  } finally {
    await handle.close();
  }
}

function locate(root: string, { job_id, file }: MediaPath): string {
  if (parseMediaPath(`${job_id}/${file}`) !== null) return join(root, job_id, file);
  throw new AppError('request_invalid', 'a media path is made of letters, digits, dots, _ and - only');
}

interface Upload {
  readonly body: Readable;
  readonly contentType: string;
  readonly limitBytes: number;
}

async function put(root: string, path: MediaPath, upload: Upload): Promise<StoredObject> {
  const target = locate(root, path);
  const incoming = join(root, '~incoming', randomUUID());
  await mkdir(dirname(incoming), { recursive: true });
  const handle = await open(incoming, 'wx');
  try {
    const sha256 = await receive(upload.body, handle, upload.limitBytes);
    const facts = { content_type: upload.contentType, sha256 };
    await prepareTarget(target, path);
    const stats = await handle.stat({ bigint: true });
    await announceFile(target, stats, facts);
    await rename(incoming, target);
    return { size: Number(stats.size), ...facts, modified_at: stats.mtime };
  } catch (error) {
    await rm(incoming, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

async function read(
  root: string,
  path: MediaPath,
  range?: { readonly start: number; readonly end: number },
): Promise<Readable> {
  const handle = await open(locate(root, path), 'r').catch(nullWhenMissing);
  if (handle !== null && (await handle.stat()).isFile()) return handle.createReadStream(range);
  await handle?.close();
  throw new AppError('not_found', `${formatMediaReference(path)} does not exist`);
}

async function remove(root: string, path: MediaPath): Promise<boolean> {
  const target = locate(root, path);
  const found = await stat(target).catch(nullWhenMissing);
  if (found === null || !found.isFile()) return false;
  if ((await unlink(target).then(() => true, nullWhenMissing)) === null) return false;
  await rm(sidecarOf(target), { force: true });
  return true;
}

async function list(
  root: string,
  jobId: string,
): Promise<readonly { readonly file: string; readonly object: StoredObject }[]> {
  const folder = dirname(locate(root, { job_id: jobId, file: 'x' }));
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(nullWhenMissing);
  const files = (entries ?? [])
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((file) => parseMediaPath(`${jobId}/${file}`) !== null)
    .sort();
  const listed: { file: string; object: StoredObject }[] = [];
  for (const file of files) {
    const object = await describe(join(folder, file));
    if (object !== null) listed.push({ file, object });
  }
  return listed;
}

/** @param directory created on the first upload; relative to the working directory */
export function createFileMediaStore(directory: string): MediaStore {
  const root = resolve(directory);
  return {
    put: (path, body, options) => put(root, path, { body, ...options }),
    head: async (path) => describe(locate(root, path)),
    read: (path, range) => read(root, path, range),
    delete: (path) => remove(root, path),
    list: (jobId) => list(root, jobId),
  };
}
