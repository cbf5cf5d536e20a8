/**
 * Where files of jobs live. An object is addressed by (namespace, job, file) and replaced as a whole: a reader
 * sees the old object or the new one, never a half-written one.
 */
import type { Readable } from 'node:stream';
import type { MediaPath } from '../../contracts/media.ts';

export interface StoredObject {
  readonly size: number;
  readonly content_type: string;
  /** Hex. */
  readonly sha256: string;
  readonly modified_at: Date;
}

/** One state of an object: what is said of it and what is read of it belong together, whatever replaces it meanwhile. */
export interface OpenObject {
  readonly object: StoredObject;
  /** Bytes `start` to `end`, both inclusive, or all that `object` has; to be called once, and closes at its end. */
  read(range?: { readonly start: number; readonly end: number }): Readable;
  /** Lets go of a file that is not read. */
  close(): Promise<void>;
}

export interface MediaStore {
  /**
   * Streams `body` into the store; nothing is visible until all of it is there.
   * @throws AppError `body_too_large` beyond `limitBytes`
   */
  put(
    path: MediaPath,
    body: Readable,
    options: { contentType: string; limitBytes: number },
  ): Promise<StoredObject>;
  /**
   * Makes `to` a file of its own with the bytes of `from`, where those have this digest. @returns null when there is no
   * such object, or it is another one by now
   */
  copy(from: MediaPath, to: MediaPath, sha256: string): Promise<StoredObject | null>;
  /** Without a look at its content. */
  exists(path: MediaPath): Promise<boolean>;
  /** Null when there is no such object. */
  head(path: MediaPath): Promise<StoredObject | null>;
  /** Null when there is no such object. */
  open(path: MediaPath): Promise<OpenObject | null>;
  /** False when there was nothing to delete. */
  delete(path: MediaPath): Promise<boolean>;
  list(jobId: string): Promise<readonly { file: string; object: StoredObject }[]>;
  /** Removes what uploads have left that broke off with their process. @returns how many */
  sweep(olderThanMs: number): Promise<number>;
}
