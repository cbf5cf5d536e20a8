/**
 * The files of all projects: a media store, and rows that describe its files. The store is the authority on the files;
 * a row saves reading the bytes again, and counts them.
 */
import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { formatMediaReference, type MediaPath } from '@capstan/core/contracts/media';
import { AppError } from '@capstan/core/errors/app-error';
import { joinFlight } from '@capstan/core/pacing';
import type {
  DescribedObject,
  MediaStore,
  OpenObject,
  PutOptions,
  StoredObject,
} from '@capstan/media-store/media-store';
import { LRUCache } from 'lru-cache';
import { findFacts, forgetFacts, forgetJob, isAwaited, keepFacts, listFacts } from '../../db/media.ts';
import { type Quota, requireRoom, settleUploads } from './quota.ts';

export interface OpenMedia extends OpenObject {
  readonly object: DescribedObject;
}

/** A file in a list. */
export interface ListedMedia {
  readonly file: string;
  readonly object: Pick<DescribedObject, 'size' | 'content_type' | 'sha256'>;
}

export interface MediaList {
  readonly files: readonly ListedMedia[];
  readonly hasMore: boolean;
}

export interface MediaLibrary {
  /**
   * @throws AppError of `MediaStore.put`, `media_quota`, `not_found` when the job is deleted; then no part of the file
   * stays
   */
  put(path: MediaPath, body: Readable, options: PutOptions): Promise<DescribedObject>;
  /** @throws AppError `media_quota`. @returns null when `from` does not have this digest (any more) */
  copy(from: MediaPath, to: MediaPath, sha256: string): Promise<DescribedObject | null>;
  /** Does not look at the content. */
  exists(path: MediaPath): Promise<boolean>;
  /** Describes a file; null when there is none. A file without a description is read once. */
  head(path: MediaPath): Promise<DescribedObject | null>;
  open(path: MediaPath): Promise<OpenMedia | null>;
  /** False when there was nothing to delete. @param etag deletes the file only in this state */
  delete(path: MediaPath, etag?: string): Promise<boolean>;
  /**
   * Deletes all files of a job, their descriptions and announced uploads; call it before the job's row is deleted. May
   * be repeated. @returns how many files
   */
  deleteJob(jobId: string): Promise<number>;
  /** By name; at most a thousand. */
  list(jobId: string): Promise<MediaList>;
  /** How long after its announcement a file may be uploaded directly to the store; 0: never. */
  readonly directUploadMs: number;
  /**
   * Removes old uploads from the store and from the announcements, independently. @returns how many unfinished uploads
   * were removed
   */
  sweep(olderThanMs: number): Promise<number>;
}

interface LibraryOptions extends Quota {
  readonly store: MediaStore;
}

const mostKnown = 10_000;
const headsAtOnce = 16;
const mostListed = 1_000;

interface Shelf extends LibraryOptions {
  /** States of files whose row this process has written. */
  readonly known: LRUCache<string, string>;
  /** Digests that are being computed, by path and etag. */
  readonly finding: Map<string, Promise<string>>;
}

async function tryKeep(shelf: Shelf, path: MediaPath, object: DescribedObject): Promise<boolean> {
  const { size, sha256, content_type, etag } = object;
  if (!(await keepFacts(shelf.db, path, { size, sha256, content_type, etag }))) return false;
  shelf.known.set(formatMediaReference(path), etag);
  return true;
}

async function keep(shelf: Shelf, path: MediaPath, object: DescribedObject): Promise<DescribedObject> {
  await tryKeep(shelf, path, object);
  return object;
}

/** Keeps the new file, unless its job was deleted meanwhile: that job is not cleaned up again. */
async function keepWritten(shelf: Shelf, path: MediaPath, object: DescribedObject): Promise<DescribedObject> {
  if (await tryKeep(shelf, path, object)) return object;
  await shelf.store.delete(path);
  throw new AppError('not_found', `${formatMediaReference(path)}: the job does not exist any more`);
}

async function measure({ store }: Shelf, path: MediaPath, etag: string): Promise<string> {
  const opened = await store.open(path);
  if (opened === null || opened.object.etag !== etag) {
    await opened?.close();
    const message = `${formatMediaReference(path)} was replaced while it was read; ask again`;
    throw new AppError('unavailable', message, { retryAfterS: 0 });
  }
  const hash = createHash('sha256');
  for await (const chunk of await opened.read()) hash.update(chunk);
  return hash.digest('hex');
}

/** Takes the digest from the row, otherwise from the bytes. */
async function findDigest(shelf: Shelf, path: MediaPath, object: StoredObject): Promise<string> {
  const facts = await findFacts(shelf.db, path);
  if (facts?.etag === object.etag) return facts.sha256;
  const sha256 = await measure(shelf, path, object.etag);
  await keep(shelf, path, { ...object, sha256 });
  return sha256;
}

/** Concurrent callers wait for the same answer. */
function findDigestOnce(shelf: Shelf, path: MediaPath, object: StoredObject): Promise<string> {
  const state = `${formatMediaReference(path)} ${object.etag}`;
  return joinFlight(shelf.finding, state, () => findDigest(shelf, path, object));
}

async function describe(shelf: Shelf, path: MediaPath, object: StoredObject): Promise<DescribedObject> {
  if (object.sha256 === null) return { ...object, sha256: await findDigestOnce(shelf, path, object) };
  const described = { ...object, sha256: object.sha256 };
  const isKept = shelf.known.get(formatMediaReference(path)) === object.etag;
  return isKept ? described : keep(shelf, path, described);
}

async function open(shelf: Shelf, path: MediaPath): Promise<OpenMedia | null> {
  const opened = await shelf.store.open(path);
  if (opened === null) return null;
  try {
    return { ...opened, object: await describe(shelf, path, opened.object) };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

async function head(shelf: Shelf, path: MediaPath): Promise<DescribedObject | null> {
  const object = await shelf.store.head(path);
  return object === null ? null : describe(shelf, path, object);
}

/** Reads a directly uploaded file before it is deleted; otherwise its announcement would count as a pending upload. */
async function lookBeforeItGoes(shelf: Shelf, path: MediaPath): Promise<void> {
  if (shelf.store.direct !== undefined && (await isAwaited(shelf.db, path))) await head(shelf, path);
}

async function put(shelf: Shelf, path: MediaPath, upload: PutOptions & { readonly body: Readable }) {
  const { body, ...options } = upload;
  const room = await requireRoom(shelf, path, 0);
  const limitBytes = Math.min(options.limitBytes, room);
  await lookBeforeItGoes(shelf, path);
  const stored = await shelf.store
    .put(path, body, { ...options, limitBytes })
    .catch(async (error: unknown) => {
      const isQuota =
        error instanceof AppError && error.code === 'body_too_large' && room < options.limitBytes;
      if (isQuota) await requireRoom(shelf, path, room + 1);
      throw error;
    });
  return keepWritten(shelf, path, stored);
}

async function copy(shelf: Shelf, from: MediaPath, target: { to: MediaPath; sha256: string }) {
  const source = await shelf.store.head(from);
  if (source === null) return null;
  await requireRoom(shelf, target.to, source.size);
  await lookBeforeItGoes(shelf, target.to);
  const copied = await shelf.store.copy(from, target.to, target.sha256);
  return copied === null ? null : keepWritten(shelf, target.to, copied);
}

async function remove(shelf: Shelf, path: MediaPath, etag?: string): Promise<boolean> {
  const { store, db, known } = shelf;
  await lookBeforeItGoes(shelf, path);
  const removed = await store.delete(path, etag);
  if (etag !== undefined && !removed) return false;
  known.delete(formatMediaReference(path));
  await forgetFacts(db, path, etag);
  return removed;
}

async function sweep(shelf: Shelf, olderThanMs: number): Promise<number> {
  const ends = await Promise.allSettled([
    shelf.store.sweep(olderThanMs),
    settleUploads(shelf.db, (path) => head(shelf, path)),
  ]);
  let removed = 0;
  for (const end of ends) {
    if (end.status === 'rejected') throw end.reason;
    removed += end.value;
  }
  return removed;
}

/** Lists files: known ones from memory, the others from the store. */
async function list(shelf: Shelf, jobId: string): Promise<MediaList> {
  const { files, hasMore } = await shelf.store.list(jobId, mostListed);
  const names = files.map(({ file }) => file);
  const known = names.length === 0 ? new Map() : await listFacts(shelf.db, jobId, names);
  const listed: ListedMedia[] = [];
  for (let at = 0; at < files.length; at += headsAtOnce) {
    const found = await Promise.all(
      files.slice(at, at + headsAtOnce).map(async ({ file, etag }) => {
        const facts = known.get(file);
        return { file, object: facts?.etag === etag ? facts : await head(shelf, { job_id: jobId, file }) };
      }),
    );
    for (const { file, object } of found) if (object !== null) listed.push({ file, object });
  }
  return { files: listed, hasMore };
}

export function createMediaLibrary(options: LibraryOptions): MediaLibrary {
  const { db, store } = options;
  const shelf: Shelf = { ...options, known: new LRUCache({ max: mostKnown }), finding: new Map() };
  return {
    put: (path, body, options) => put(shelf, path, { body, ...options }),
    copy: (from, to, sha256) => copy(shelf, from, { to, sha256 }),
    exists: (path) => store.exists(path),
    head: (path) => head(shelf, path),
    open: (path) => open(shelf, path),
    delete: (path, etag) => remove(shelf, path, etag),
    deleteJob: async (jobId) => {
      const removed = await store.deleteJob(jobId);
      await forgetJob(db, jobId);
      return removed;
    },
    list: (jobId) => list(shelf, jobId),
    directUploadMs: store.direct?.uploadMs ?? 0,
    sweep: (olderThanMs) => sweep(shelf, olderThanMs),
  };
}
