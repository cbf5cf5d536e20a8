/**
 * Transfers bytes without the API. An upload is announced with its size and SHA-256; the answer is a set of presigned
 * requests that anybody may send: to the bucket where clients reach it, otherwise to the API itself, so that clients
 * need one method only.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import {
  formatMediaReference,
  type MediaPath,
  type UploadRequest,
  type UploadTicket,
} from '@capstan/core/contracts/media';
import { AppError } from '@capstan/core/errors/app-error';
import { type DescribedObject, digestMismatch, type MediaStore } from '@capstan/media-store/media-store';
import {
  announceUpload,
  dropUploads,
  endUpload,
  type FoundUpload,
  findUpload,
  noteMade,
} from '../../db/media.ts';
import type { MediaLibrary } from './media-library.ts';
import { announcedHours, type Quota, requireRoom } from './quota.ts';

export interface DirectMedia {
  /** @throws AppError `body_too_large`, `media_quota` */
  announce(projectId: string, path: MediaPath, upload: UploadRequest): Promise<UploadTicket>;
  /**
   * Stores an announced file; a file that has arrived is not written again. @throws AppError `not_found`,
   * `digest_mismatch`, `body_too_large`
   */
  receive(token: string, body: Readable): Promise<StoredUpload>;
  /**
   * Makes a file of its parts; may be repeated. If the result differs from the announcement, it deletes that result and
   * nothing else.
   *
   * @throws AppError `not_found`, `upload_incomplete`, `digest_mismatch`
   */
  complete(token: string): Promise<StoredUpload>;
  /** Where clients read the file's bytes; null: from the API. @param attachment to be saved under that name */
  redirect(path: MediaPath, attachment: string | undefined): Promise<string | null>;
}

export interface StoredUpload {
  readonly path: MediaPath;
  readonly object: DescribedObject;
}

interface DirectMediaOptions extends Quota {
  readonly store: MediaStore;
  readonly library: Pick<MediaLibrary, 'put' | 'head' | 'delete'>;
  /** Whether clients reach the store directly, if it supports that. */
  readonly passesBy: boolean;
  readonly limitBytes: number;
}

const partBytes = 16 * 1_048_576;
/** Larger files have larger parts: each part is a URL of its own. */
const mostParts = 1_000;
const hour = 3_600_000;

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

function toUrl(token: string): string {
  return `/v1/uploads/${token}`;
}

interface Announcement {
  readonly path: MediaPath;
  readonly upload: UploadRequest;
  readonly token: string;
}

/** @returns the client's requests, and the store's name for an upload in parts */
async function allow({ store, passesBy }: DirectMediaOptions, { path, upload, token }: Announcement) {
  const { size, sha256, content_type: contentType } = upload;
  const direct = passesBy ? store.direct : undefined;
  if (direct === undefined) {
    const headers = { 'content-type': contentType, 'content-length': String(size) };
    const expires_at = new Date(Date.now() + announcedHours * hour).toISOString();
    return { ticket: { url: toUrl(token), headers, expires_at }, upload_id: null };
  }
  if (size <= partBytes) {
    const { expires_at, ...request } = await direct.allowUpload(path, { size, sha256, contentType });
    return { ticket: { ...request, expires_at: expires_at.toISOString() }, upload_id: null };
  }
  const bytes = Math.max(partBytes, Math.ceil(size / mostParts));
  const { upload_id, parts, expires_at } = await direct.allowParts(
    path,
    { size, sha256, contentType },
    bytes,
  );
  const ticket = { parts: [...parts], complete_url: toUrl(token), expires_at: expires_at.toISOString() };
  return { ticket, upload_id };
}

function noUpload(): AppError {
  return new AppError(
    'not_found',
    `no upload was announced with this address within ${announcedHours} h, or its file was refused or replaced`,
  );
}

async function find({ db }: DirectMediaOptions, token: string): Promise<FoundUpload> {
  const found = await findUpload(db, hashOf(token), announcedHours);
  if (found === null) throw noUpload();
  return found;
}

function pathOf({ job_id, file }: FoundUpload): MediaPath {
  return { job_id, file };
}

/** @returns the state that the parts make; null where there are none, or their state is unknown */
async function makeOfParts({ db, store }: DirectMediaOptions, token: string, upload: FoundUpload) {
  if (upload.is_stored || upload.upload_id === null) return null;
  if (upload.etag !== null) return upload.etag;
  const etag = await store.direct?.completeParts(pathOf(upload), upload.upload_id, upload.size);
  if (etag === undefined || etag === null) return null;
  await noteMade(db, hashOf(token), etag);
  return etag;
}

function notCome(path: MediaPath, seen: string | undefined, expected: string): AppError {
  const place = formatMediaReference(path);
  const there = seen === undefined ? 'there is no file' : `what stands there has the SHA-256 ${seen}`;
  return new AppError(
    'upload_incomplete',
    `${place} is missing or was replaced: the announced SHA-256 is ${expected}, and ${there}`,
  );
}

/** S3 has checked the parts only; the whole file is read once. */
async function complete(options: DirectMediaOptions, token: string): Promise<StoredUpload> {
  const { db, library } = options;
  const upload = await find(options, token);
  const path = pathOf(upload);
  const made = await makeOfParts(options, token, upload);
  const object = await library.head(path);
  if (object?.sha256 === upload.sha256) {
    await endUpload(db, hashOf(token), { ...path, etag: object.etag });
    return { path, object };
  }
  if (object === null || object.etag !== made) throw notCome(path, object?.sha256, upload.sha256);
  await library.delete(path, made);
  await dropUploads(db, [hashOf(token)]);
  throw digestMismatch(path, { seen: object.sha256, expected: upload.sha256 });
}

/** Returns a file that has arrived: its upload writes no more, so a file that has replaced it since stays. */
async function answerAgain({ library }: DirectMediaOptions, upload: FoundUpload): Promise<StoredUpload> {
  const path = pathOf(upload);
  const object = await library.head(path);
  if (object === null || object.etag !== upload.etag) throw noUpload();
  return { path, object };
}

async function receive(options: DirectMediaOptions, token: string, body: Readable): Promise<StoredUpload> {
  const { db, library } = options;
  const upload = await find(options, token);
  const { size: limitBytes, sha256: expected, content_type: contentType } = upload;
  const path = pathOf(upload);
  if (upload.is_stored) return answerAgain(options, upload);
  const object = await library.put(path, body, { contentType, limitBytes, expected });
  await endUpload(db, hashOf(token), { ...path, etag: object.etag });
  return { path, object };
}

export function createDirectMedia(options: DirectMediaOptions): DirectMedia {
  const { db, store, limitBytes, passesBy } = options;
  return {
    announce: async (projectId, path, upload) => {
      const { size, sha256, content_type } = upload;
      if (size > limitBytes)
        throw new AppError('body_too_large', `the file has ${size} bytes; at most ${limitBytes} are allowed`);
      await requireRoom(options, path, size);
      const token = randomBytes(32).toString('base64url');
      const { ticket, upload_id } = await allow(options, { path, upload, token });
      await announceUpload(db, projectId, {
        ...path,
        size,
        sha256,
        content_type,
        upload_id,
        token: hashOf(token),
      });
      return ticket;
    },
    receive: (token, body) => receive(options, token, body),
    complete: (token) => complete(options, token),
    redirect: async (path, attachment) =>
      passesBy && store.direct !== undefined
        ? store.direct.allowRead(path, attachment === undefined ? {} : { attachment })
        : null,
  };
}
