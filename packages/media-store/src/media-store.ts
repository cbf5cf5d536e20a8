/**
 * Where files of jobs live. An object is addressed by (job, file) and replaced as a whole: a reader sees the old
 * object or the new one, never a half-written one. Some refusals every media store gives alike.
 */
import type { Readable } from 'node:stream';
import {
  explainMediaPath,
  formatMediaReference,
  type MediaPath,
  parseMediaPath,
} from '@capstan/core/contracts/media';
import { AppError } from '@capstan/core/errors/app-error';

export interface StoredObject {
  readonly size: number;
  readonly content_type: string;
  /** Hex; null when the store does not know it without reading the bytes. */
  readonly sha256: string | null;
  /** Names this state of the object: written to again, it gets another one. */
  readonly etag: string;
  readonly modified_at: Date;
}

/** An object whose bytes this process has moved, or seen. */
export interface DescribedObject extends StoredObject {
  readonly sha256: string;
}

export interface ByteSpan {
  readonly start: number;
  /** The last byte, included. */
  readonly end: number;
}

/** One state of an object: its description and its bytes belong together, whatever replaces it meanwhile. */
export interface OpenObject {
  readonly object: StoredObject;
  /**
   * The bytes of the span, or all that `object` has; to be called once, and closes at its end.
   *
   * @throws AppError `unavailable` when the object was replaced and the store has the new one alone
   */
  read(span?: ByteSpan): Promise<Readable>;
  /** Lets go of a file that is not read. */
  close(): Promise<void>;
}

export interface PutOptions {
  readonly contentType: string;
  readonly limitBytes: number;
  /** Refuses to replace an object; of several that come at once one is stored. */
  readonly ifAbsent?: boolean;
  /** The expected SHA-256, in hex; with another one nothing is stored. */
  readonly expected?: string;
}

/** Where a copy goes, and what it must be. */
export interface CopyOrder {
  readonly to: MediaPath;
  readonly sha256: string;
}

export interface ListedFiles {
  readonly files: readonly { readonly file: string; readonly etag: string }[];
  readonly hasMore: boolean;
}

export interface MediaStore {
  /** The name of the store, for people. */
  readonly name: string;
  /**
   * Streams `body` into the store; nothing is visible until all of it has arrived.
   *
   * @throws AppError `body_too_large` beyond `limitBytes`, `already_there` of `ifAbsent`, `digest_mismatch`
   */
  put(path: MediaPath, body: Readable, options: PutOptions): Promise<DescribedObject>;
  /** Makes `to` an object of its own with the bytes of `from`. @returns null when those do not have this digest (any more) */
  copy(from: MediaPath, to: MediaPath, sha256: string): Promise<DescribedObject | null>;
  /** Without a look at its content. */
  exists(path: MediaPath): Promise<boolean>;
  /** Null when there is no such object. */
  head(path: MediaPath): Promise<StoredObject | null>;
  /** Null when there is no such object. */
  open(path: MediaPath): Promise<OpenObject | null>;
  /** False when there was nothing to delete. @param etag only in this state */
  delete(path: MediaPath, etag?: string): Promise<boolean>;
  /** Deletes all objects of a job. @returns how many */
  deleteJob(jobId: string): Promise<number>;
  /** Some of them where there are more than `most`; by name. */
  list(jobId: string, most: number): Promise<ListedFiles>;
  /** Removes what uploads have left that broke off with their process. @returns how many */
  sweep(olderThanMs: number): Promise<number>;
  /** Writes, reads and deletes a small object. @throws AppError that names the failing operation */
  probe(): Promise<void>;
  /** How clients reach the bytes themselves, where the store has such a way. */
  readonly direct?: DirectAccess;
}

/** A request that anybody may send, once or more, until it expires. */
export interface AllowedRequest {
  readonly url: string;
  /** To be sent with it as they are. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface UploadFacts {
  readonly size: number;
  readonly sha256: string;
  readonly contentType: string;
}

export interface DirectAccess {
  /** @param attachment name under which a browser saves it */
  allowRead(path: MediaPath, options: { readonly attachment?: string }): Promise<string>;
  /** For how long an upload in one piece is allowed; one in parts becomes no file without us. */
  readonly uploadMs: number;
  allowUpload(path: MediaPath, upload: UploadFacts): Promise<AllowedRequest & { readonly expires_at: Date }>;
  /** @param partBytes of all parts but the last */
  allowParts(path: MediaPath, upload: UploadFacts, partBytes: number): Promise<AllowedParts>;
  /**
   * Makes one object of the parts, in their order.
   *
   * @returns its etag; null when the upload was over before, and the path has an object of this size, which may be
   * another
   * @throws AppError `upload_incomplete` when they are not the announced ones
   */
  completeParts(path: MediaPath, uploadId: string, size: number): Promise<string | null>;
}

export interface AllowedParts {
  readonly upload_id: string;
  readonly parts: readonly AllowedRequest[];
  readonly expires_at: Date;
}

export function alreadyThere(path: MediaPath): AppError {
  return new AppError('already_there', `${formatMediaReference(path)} exists, and was not to be replaced`);
}

export function digestMismatch(
  path: MediaPath,
  { seen, expected }: { readonly seen: string; readonly expected: string },
): AppError {
  return new AppError(
    'digest_mismatch',
    `${formatMediaReference(path)}: what arrived has the SHA-256 ${seen}; announced was ${expected}. It is not kept`,
  );
}

export function tooLarge(limitBytes: number): AppError {
  return new AppError('body_too_large', `more than the allowed ${limitBytes} bytes`);
}

export function fileAndFolder(path: MediaPath, cause: unknown): AppError {
  const message = `${formatMediaReference(path)} is both a file and a folder of files`;
  return new AppError('state_conflict', message, { cause });
}

/** @throws AppError `request_invalid` for what is no media path */
export function requireMediaPath({ job_id, file }: MediaPath): void {
  const path = `${job_id}/${file}`;
  if (parseMediaPath(path) === null) throw new AppError('request_invalid', explainMediaPath(path));
}
