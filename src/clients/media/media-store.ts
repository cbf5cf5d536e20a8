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
  /** Null when there is no such object. */
  head(path: MediaPath): Promise<StoredObject | null>;
  /** Bytes `start` to `end`, both inclusive; the whole object without a range. */
  read(path: MediaPath, range?: { start: number; end: number }): Promise<Readable>;
  /** False when there was nothing to delete. */
  delete(path: MediaPath): Promise<boolean>;
  list(jobId: string): Promise<readonly { file: string; object: StoredObject }[]>;
}
