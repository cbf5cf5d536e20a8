/**
 * The files of one call, by their media references, in a temporary folder that is created on first use and removed when
 * the call ends.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { type MediaPath, parseMediaReference } from '@capstan/core/contracts/media';
import { z } from 'zod';
import type { MediaTransfer } from './media-transfer.ts';
import { moveFile } from './upload.ts';

/** Schema of a `media://<job_id>/<file>` string, for input and output schemas. `/spec` shows it as a pattern. */
export const MediaReference = z
  .string()
  .regex(/^media:\/\/[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+){1,7}$/, {
    error: 'expected media://<job_id>/<file>',
  })
  .refine((text) => parseMediaReference(text) !== null, {
    error: 'a segment is 1 to 128 letters, digits, dots, _ or -, and not . or ..',
  });

/** @throws Error when the text is not a media reference */
export function readReference(text: string): MediaPath {
  const path = parseMediaReference(text);
  if (path === null)
    throw new Error(`${JSON.stringify(text)} is not a media reference: media://<job_id>/<file>`);
  return path;
}

/** Access to the files of a job during one call. Transfers abort with the call. */
export interface CallMedia {
  /**
   * Downloads a file.
   * @returns the local path of a copy, which is deleted when the call ends
   * @throws Error when the reference is invalid or the object does not exist
   * @throws CallFailure 503 when the media store is unavailable
   */
  download(reference: string): Promise<string>;
  /**
   * Uploads a local file; an existing object is replaced as a whole.
   * @param reference `media://<job_id>/<file>` of the object to write
   * @throws Error when `reference` is invalid or the upload is refused
   * @throws CallFailure 503 when the media store is unavailable
   */
  upload(localPath: string, reference: string, contentType: string): Promise<void>;
  /** A unique path in the call's temporary folder; no file is created. The folder is deleted when the call ends. */
  temporaryPath(fileName: string): Promise<string>;
}

export function openCallMedia(
  transfer: MediaTransfer,
  signal: AbortSignal,
): { media: CallMedia; close(): Promise<void> } {
  let folder: Promise<string> | undefined;
  let files = 0;

  const temporaryPath = async (fileName: string): Promise<string> => {
    folder ??= mkdtemp(join(tmpdir(), 'capstan-call-'));
    files += 1;
    return join(await folder, `${files}-${basename(fileName)}`);
  };

  return {
    media: {
      temporaryPath,
      download: async (reference) => {
        const path = readReference(reference);
        const localPath = await temporaryPath(path.file);
        await moveFile(signal, () => transfer.download(path, localPath, signal));
        return localPath;
      },
      upload: (localPath, reference, contentType) =>
        moveFile(signal, () =>
          transfer.upload({ path: localPath, contentType }, readReference(reference), signal),
        ),
    },
    close: async () => {
      if (folder !== undefined) await rm(await folder, { recursive: true, force: true });
    },
  };
}
