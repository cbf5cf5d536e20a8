/**
 * Ways of bytes past the API. An upload is announced with its size and SHA-256, and answered by requests that anybody may
 * send who has them: to the bucket where clients reach that, else to the API itself, so that clients need one way only.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import { digestMismatch } from '../../clients/media/media-faults.ts';
import type { DescribedObject, MediaStore } from '../../clients/media/media-store.ts';
import {
  formatMediaReference,
  type MediaPath,
  type UploadRequest,
  type UploadTicket,
} from '../../contracts/media.ts';
import type { Db } from '../../db/connect.ts';
import { type AnnouncedUpload, announceUpload, findUpload } from '../../db/media/media-upload.ts';
import { AppError } from '../../errors/app-error.ts';
import { announcedHours, type MediaLibrary } from './media-library.ts';
import type { RequireRoom } from './require-room.ts';

export interface DirectMedia {
  /** @throws AppError `body_too_large`, `media_quota` */
  announce(projectId: string, path: MediaPath, upload: UploadRequest): Promise<UploadTicket>;
  /** Takes an announced file as a whole. @throws AppError `not_found`, `digest_mismatch`, `body_too_large` */
  receive(token: string, body: Readable): Promise<StoredUpload>;
  /** Makes a file of its parts; may be repeated. @throws AppError `not_found`, `upload_incomplete`, `digest_mismatch` */
  complete(token: string): Promise<StoredUpload>;
  /** Where clients read the file's bytes themselves; null when that is here. @param attachment to be saved under that name */
  redirect(path: MediaPath, attachment: string | undefined): Promise<string | null>;
}

export interface StoredUpload {
  readonly path: MediaPath;
  readonly object: DescribedObject;
}

export interface DirectMediaDependencies {
  readonly db: Db;
  readonly store: MediaStore;
  readonly library: Pick<MediaLibrary, 'put' | 'head' | 'delete'>;
  /** Whether clients reach the store themselves, where it has such a way. */
  readonly passesBy: boolean;
  readonly limitBytes: number;
  readonly requireRoom: RequireRoom;
}

const partBytes = 16 * 1_048_576;
/** Of larger files the parts are larger: each is a URL of its own. */
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

/** @returns what the client gets, and the store's name for an upload in parts */
async function allow({ store, passesBy }: DirectMediaDependencies, { path, upload, token }: Announcement) {
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

async function find({ db }: DirectMediaDependencies, token: string): Promise<AnnouncedUpload> {
  const found = await findUpload(db, hashOf(token), announcedHours);
  if (found !== null) return found;
  throw new AppError('not_found', `no upload was announced with this address within ${announcedHours} h`);
}

/** S3 has checked the parts alone; what they make together is read once. */
async function complete(dependencies: DirectMediaDependencies, token: string): Promise<StoredUpload> {
  const { store, library } = dependencies;
  const { job_id, file, size, sha256, upload_id } = await find(dependencies, token);
  const path = { job_id, file };
  if (upload_id !== null) await store.direct?.completeParts(path, upload_id, size);
  const object = await library.head(path);
  if (object === null)
    throw new AppError('upload_incomplete', `${formatMediaReference(path)} has not come yet`);
  if (object.sha256 === sha256) return { path, object };
  await library.delete(path);
  throw digestMismatch(path, { seen: object.sha256, expected: sha256 });
}

export function createDirectMedia(dependencies: DirectMediaDependencies): DirectMedia {
  const { db, library, store, requireRoom, limitBytes, passesBy } = dependencies;
  return {
    announce: async (projectId, path, upload) => {
      const { size, sha256, content_type } = upload;
      if (size > limitBytes)
        throw new AppError('body_too_large', `the file has ${size} bytes; at most ${limitBytes} are allowed`);
      await requireRoom(path, size);
      const token = randomBytes(32).toString('base64url');
      const { ticket, upload_id } = await allow(dependencies, { path, upload, token });
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
    receive: async (token, body) => {
      const { job_id, file, size, sha256, content_type } = await find(dependencies, token);
      const path = { job_id, file };
      const options = { contentType: content_type, limitBytes: size, expected: sha256 };
      return { path, object: await library.put(path, body, options) };
    },
    complete: (token) => complete(dependencies, token),
    redirect: async (path, attachment) =>
      passesBy && store.direct !== undefined
        ? store.direct.allowRead(path, attachment === undefined ? {} : { attachment })
        : null,
  };
}
