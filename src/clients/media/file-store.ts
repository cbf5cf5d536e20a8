/**
 * A media store in one folder: `<directory>/<job_id>/<file>`, each object a plain file that any tool can open.
 * An upload is written to `~incoming` and renamed into place, so it is visible whole or not at all. Names outside
 * the media grammar (sidecars, uploads under way) are never objects.
 */
import { createHash, randomUUID } from 'node:crypto';
import { type FileHandle, lstat, open as openHandle, readdir, rename, rm, unlink } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { Readable } from 'node:stream';
import { formatMediaReference, type MediaPath, parseMediaPath } from '../../contracts/media.ts';
import { AppError } from '../../errors/app-error.ts';
import { createFileDigests, type FileDigests } from './file-digests.ts';
import { announceFile, describeFile, sidecarOf } from './file-metadata.ts';
import { findFolder, hasCode, makeFolder, nullWhenMissing, openFile } from './guarded-files.ts';
import type { MediaStore, OpenObject, StoredObject } from './media-store.ts';

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

interface Store {
  readonly root: string;
  readonly digests: FileDigests;
}

function linked(path: MediaPath): AppError {
  return new AppError(
    'state_conflict',
    `${formatMediaReference(path)} is reached through a link, which is not followed`,
  );
}

/** @returns where the file goes, with no link on the way */
async function prepareTarget(root: string, path: MediaPath): Promise<string> {
  const target = locate(root, path);
  const clash = (cause?: unknown) =>
    new AppError('state_conflict', `${formatMediaReference(path)} is both a file and a folder of files`, {
      cause,
    });
  const folder = await makeFolder(root, dirname(target)).catch((error: unknown) => {
    throw hasCode(error, ['EEXIST', 'ENOTDIR']) ? clash(error) : error;
  });
  if (folder === null) throw linked(path);
  const existing = await lstat(target).catch(nullWhenMissing);
  if (existing?.isDirectory()) throw clash();
  return target;
}

async function open({ root, digests }: Store, path: MediaPath): Promise<OpenObject | null> {
  const file = locate(root, path);
  const handle = await openFile(root, file);
  if (handle === null) return null;
  try {
    const object = await describeFile({ root, file }, handle, digests);
    return { object, read: (range) => readOpened(handle, object, range), close: () => handle.close() };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Never more than was said of it: bytes beyond an announced length would belong to the next answer. */
function readOpened(
  handle: FileHandle,
  { size }: StoredObject,
  { start, end }: { readonly start: number; readonly end: number } = { start: 0, end: size - 1 },
): Readable {
  if (end >= start) return handle.createReadStream({ start, end });
  return new Readable({
    read() {
      this.push(null);
    },
    destroy: (error, done) => void handle.close().then(() => done(error), done),
  });
}

async function head(store: Store, path: MediaPath): Promise<StoredObject | null> {
  const opened = await open(store, path);
  await opened?.close();
  return opened?.object ?? null;
}

async function exists(root: string, path: MediaPath): Promise<boolean> {
  const handle = await openFile(root, locate(root, path));
  await handle?.close();
  return handle !== null;
}

function locate(root: string, { job_id, file }: MediaPath): string {
  if (parseMediaPath(`${job_id}/${file}`) !== null) return join(root, job_id, file);
  throw new AppError('request_invalid', 'a media path is made of letters, digits, dots, _ and - only');
}

interface Upload {
  readonly body: Readable;
  readonly contentType: string;
  readonly limitBytes: number;
  /** What it must be; else it is not stored. */
  readonly expected?: string;
}

function incomingOf(root: string): string {
  return join(root, '~incoming');
}

async function put(store: Store, path: MediaPath, upload: Omit<Upload, 'expected'>): Promise<StoredObject> {
  const stored = await receiveFile(store, path, upload);
  if (stored === null) throw new RangeError('an upload that expects nothing is stored');
  return stored;
}

/** Instances may write to a file in place, so a copy shares no bytes with what it was made of. */
async function copy(store: Store, from: MediaPath, { to, sha256 }: CopyTarget): Promise<StoredObject | null> {
  const opened = await open(store, from);
  if (opened === null) return null;
  const { object } = opened;
  if (object.sha256 !== sha256) {
    await opened.close();
    return null;
  }
  const upload = { contentType: object.content_type, limitBytes: object.size, expected: sha256 };
  return receiveFile(store, to, { ...upload, body: opened.read() });
}

interface CopyTarget {
  readonly to: MediaPath;
  readonly sha256: string;
}

/** @returns null when it is not what was expected */
async function receiveFile({ root }: Store, path: MediaPath, upload: Upload): Promise<StoredObject | null> {
  locate(root, path); // or throws, before anything is made
  if ((await makeFolder(root, incomingOf(root))) === null) throw linked(path);
  const incoming = join(incomingOf(root), randomUUID());
  const handle = await openHandle(incoming, 'wx');
  try {
    const sha256 = await receive(upload.body, handle, upload.limitBytes);
    if (upload.expected !== undefined && upload.expected !== sha256) {
      await rm(incoming, { force: true });
      return null;
    }
    const facts = { content_type: upload.contentType, sha256 };
    const file = await prepareTarget(root, path);
    const stats = await handle.stat({ bigint: true });
    await announceFile({ root, file }, stats, facts);
    await rename(incoming, file);
    return { size: Number(stats.size), ...facts, modified_at: stats.mtime };
  } catch (error) {
    await rm(incoming, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

async function remove(root: string, path: MediaPath): Promise<boolean> {
  const target = locate(root, path);
  if ((await findFolder(root, dirname(target))) === null) return false;
  const found = await lstat(target).catch(nullWhenMissing);
  if (found === null || !found.isFile()) return false;
  if ((await unlink(target).then(() => true, nullWhenMissing)) === null) return false;
  await rm(sidecarOf(target), { force: true });
  return true;
}

async function list(
  store: Store,
  jobId: string,
): Promise<readonly { readonly file: string; readonly object: StoredObject }[]> {
  const folder = dirname(locate(store.root, { job_id: jobId, file: 'x' }));
  if ((await findFolder(store.root, folder)) === null) return [];
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(nullWhenMissing);
  const files = (entries ?? [])
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((file) => parseMediaPath(`${jobId}/${file}`) !== null)
    .sort();
  const listed: { file: string; object: StoredObject }[] = [];
  for (const file of files) {
    const object = await head(store, { job_id: jobId, file });
    if (object !== null) listed.push({ file, object });
  }
  return listed;
}

/** An upload under way is written to all the time, so its file is young. */
async function sweep(root: string, olderThanMs: number): Promise<number> {
  const folder = await findFolder(root, incomingOf(root));
  if (folder === null) return 0;
  let removed = 0;
  for (const name of await readdir(folder)) {
    const found = await lstat(join(folder, name)).catch(nullWhenMissing);
    if (found === null || !found.isFile() || Date.now() - found.mtimeMs < olderThanMs) continue;
    await rm(join(folder, name), { force: true });
    removed++;
  }
  return removed;
}

/** @param directory created on the first upload; relative to the working directory */
export function createFileMediaStore(directory: string): MediaStore {
  const root = resolve(directory);
  const store = { root, digests: createFileDigests() };
  return {
    put: (path, body, options) => put(store, path, { body, ...options }),
    copy: (from, to, sha256) => copy(store, from, { to, sha256 }),
    exists: (path) => exists(root, path),
    head: async (path) => head(store, path),
    open: async (path) => open(store, path),
    delete: (path) => remove(root, path),
    list: (jobId) => list(store, jobId),
    sweep: (olderThanMs) => sweep(root, olderThanMs),
  };
}
