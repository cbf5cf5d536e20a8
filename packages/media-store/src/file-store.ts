/**
 * A media store in one folder: `<directory>/<job_id>/<file>`, each object a plain file that any tool can open. An
 * upload is written to `~incoming` and renamed into place, so it is visible whole or not at all. Names outside the
 * media grammar (sidecars, uploads in progress) are never objects.
 */
import { randomUUID } from 'node:crypto';
import {
  type FileHandle,
  link,
  lstat,
  opendir,
  open as openHandle,
  readdir,
  rename,
  rm,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { Readable } from 'node:stream';
import { formatMediaReference, type MediaPath, parseMediaPath } from '@capstan/core/contracts/media';
import { AppError } from '@capstan/core/errors/app-error';
import {
  announceFile,
  createFileDigests,
  describeFile,
  type FileDigests,
  identityOf,
  sidecarOf,
} from './file-metadata.ts';
import { findFolder, hasCode, makeFolder, nullWhenMissing, openFile, receive } from './guarded-files.ts';
import {
  alreadyThere,
  type ByteSpan,
  type CopyOrder,
  type DescribedObject,
  digestMismatch,
  fileAndFolder,
  type ListedFiles,
  type MediaStore,
  type OpenObject,
  type PutOptions,
  requireMediaPath,
  type StoredObject,
} from './media-store.ts';

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
  const clash = (cause?: unknown) => fileAndFolder(path, cause);
  const folder = await makeFolder(root, dirname(target)).catch((error: unknown) => {
    throw hasCode(error, ['EEXIST', 'ENOTDIR']) ? clash(error) : error;
  });
  if (folder === null) throw linked(path);
  const existing = await lstat(target).catch(nullWhenMissing);
  if (existing?.isDirectory()) throw clash();
  return target;
}

async function open({ root, digests }: Store, path: MediaPath): Promise<OpenedFile | null> {
  const file = locate(root, path);
  const handle = await openFile(root, file);
  if (handle === null) return null;
  try {
    const object = await describeFile({ root, file }, handle, digests);
    return { object, read: async (span) => readOpened(handle, object, span), close: () => handle.close() };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

interface OpenedFile extends OpenObject {
  readonly object: DescribedObject;
}

/** Never more than was announced: bytes beyond an announced length would belong to the next answer. */
function readOpened(
  handle: FileHandle,
  { size }: StoredObject,
  { start, end }: ByteSpan = { start: 0, end: size - 1 },
): Readable {
  if (end >= start) return handle.createReadStream({ start, end });
  return new Readable({
    read() {
      this.push(null);
    },
    destroy: (error, done) => void handle.close().then(() => done(error), done),
  });
}

async function head(store: Store, path: MediaPath): Promise<DescribedObject | null> {
  const opened = await open(store, path);
  await opened?.close();
  return opened?.object ?? null;
}

async function exists(root: string, path: MediaPath): Promise<boolean> {
  const handle = await openFile(root, locate(root, path));
  await handle?.close();
  return handle !== null;
}

function locate(root: string, path: MediaPath): string {
  requireMediaPath(path);
  return join(root, path.job_id, path.file);
}

function incomingOf(root: string): string {
  return join(root, '~incoming');
}

/** Instances may write to a file in place, so a copy shares no bytes with what it was made of. */
async function copy(
  store: Store,
  from: MediaPath,
  { to, sha256 }: CopyOrder,
): Promise<DescribedObject | null> {
  const opened = await open(store, from);
  if (opened === null) return null;
  const { object } = opened;
  if (object.sha256 !== sha256) {
    await opened.close();
    return null;
  }
  const options = { contentType: object.content_type, limitBytes: object.size, expected: sha256 };
  return put(store, to, { ...options, body: await opened.read() }).catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'digest_mismatch') return null;
    throw error;
  });
}

interface FileUpload extends PutOptions {
  readonly body: Readable;
}

async function put({ root }: Store, path: MediaPath, upload: FileUpload): Promise<DescribedObject> {
  locate(root, path); // or throws, before anything is made
  if ((await makeFolder(root, incomingOf(root))) === null) throw linked(path);
  const incoming = join(incomingOf(root), randomUUID());
  const handle = await openHandle(incoming, 'wx');
  try {
    const { sha256 } = await receive(upload.body, handle, upload.limitBytes);
    if (upload.expected !== undefined && upload.expected !== sha256)
      throw digestMismatch(path, { seen: sha256, expected: upload.expected });
    const facts = { content_type: upload.contentType, sha256 };
    const file = await prepareTarget(root, path);
    const stats = await handle.stat({ bigint: true });
    if (upload.ifAbsent === true) await linkNew(incoming, file, path);
    await announceFile({ root, file }, stats, facts);
    if (upload.ifAbsent !== true) await rename(incoming, file);
    return { size: Number(stats.size), ...facts, etag: identityOf(stats), modified_at: stats.mtime };
  } finally {
    await rm(incoming, { force: true });
    await handle.close();
  }
}

/** The file system lets in one of several writers at once. */
async function linkNew(incoming: string, file: string, path: MediaPath): Promise<void> {
  await link(incoming, file).catch((error: unknown) => {
    throw hasCode(error, ['EEXIST']) ? alreadyThere(path) : error;
  });
}

async function remove(root: string, path: MediaPath, etag: string | undefined): Promise<boolean> {
  const target = locate(root, path);
  if ((await findFolder(root, dirname(target))) === null) return false;
  const found = await lstat(target, { bigint: true }).catch(nullWhenMissing);
  if (found === null || !found.isFile()) return false;
  if (etag !== undefined && identityOf(found) !== etag) return false;
  if ((await unlink(target).then(() => true, nullWhenMissing)) === null) return false;
  await rm(sidecarOf(target), { force: true });
  return true;
}

/** Names of plain files, as the folder has them; read as far as the caller iterates. */
async function* walk(root: string, folder: string): AsyncGenerator<string> {
  if ((await findFolder(root, folder)) === null) return;
  const entries = await opendir(folder, { recursive: true }).catch(nullWhenMissing);
  if (entries === null) return;
  for await (const entry of entries)
    if (entry.isFile()) yield relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/');
}

function folderOf(root: string, jobId: string): string {
  return dirname(locate(root, { job_id: jobId, file: 'x' }));
}

/** Files beyond the list are neither read nor opened: a job may have any number of files. */
async function list(root: string, jobId: string, most: number): Promise<ListedFiles> {
  const folder = folderOf(root, jobId);
  const files: { file: string; etag: string }[] = [];
  for await (const file of walk(root, folder)) {
    if (parseMediaPath(`${jobId}/${file}`) === null) continue;
    if (files.length === most) return { files: files.sort(byName), hasMore: true };
    const handle = await openFile(root, join(folder, file));
    if (handle === null) continue;
    files.push({ file, etag: identityOf(await handle.stat({ bigint: true })) });
    await handle.close();
  }
  return { files: files.sort(byName), hasMore: false };
}

function byName(a: { readonly file: string }, b: { readonly file: string }): number {
  return a.file < b.file ? -1 : 1;
}

async function removeJob(root: string, jobId: string): Promise<number> {
  const folder = folderOf(root, jobId);
  let removed = 0;
  for await (const file of walk(root, folder)) if (parseMediaPath(`${jobId}/${file}`) !== null) removed++;
  if ((await findFolder(root, folder)) === null) return 0;
  await rm(folder, { recursive: true, force: true }); // sidecars and links too, not what those lead to
  return removed;
}

/** An upload in progress is written to all the time, so its file is young. */
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

async function probe(root: string): Promise<void> {
  const file = join(incomingOf(root), randomUUID());
  try {
    await makeFolder(root, incomingOf(root));
    await writeFile(file, 'probe', { flag: 'wx' });
    await rm(file);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new AppError('unavailable', `the media folder ${root} cannot be written: ${reason}`, { cause });
  }
}

/** @param directory created on the first upload; relative to the working directory */
export function createFileMediaStore(directory: string): MediaStore {
  const root = resolve(directory);
  const store = { root, digests: createFileDigests() };
  return {
    name: `file://${root}`,
    put: (path, body, options) => put(store, path, { body, ...options }),
    copy: (from, to, sha256) => copy(store, from, { to, sha256 }),
    exists: (path) => exists(root, path),
    head: async (path) => head(store, path),
    open: async (path) => open(store, path),
    delete: (path, etag) => remove(root, path, etag),
    deleteJob: (jobId) => removeJob(root, jobId),
    list: (jobId, most) => list(root, jobId, most),
    sweep: (olderThanMs) => sweep(root, olderThanMs),
    probe: () => probe(root),
  };
}
