/**
 * The files of one call, by their media references: a temporary folder made when first needed and removed when the
 * call ends.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { type MediaPath, parseMediaReference } from '../../contracts/media.ts';
import type { MediaTransfer } from './media-transfer.ts';
import { moveFile } from './upload.ts';

/** A `media://<job_id>/<file>` string for input and output schemas; shown in the spec as a pattern. */
export const MediaReference = z
  .string()
  .regex(/^media:\/\/[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+){1,7}$/, {
    error: 'expected media://<job_id>/<file>',
  })
  .refine((text) => parseMediaReference(text) !== null, {
    error: 'a segment is 1 to 128 letters, digits, dots, _ or -, and not . or ..',
  });

/** @throws Error when the text is no media reference */
export function readReference(text: string): MediaPath {
  const path = parseMediaReference(text);
  if (path === null)
    throw new Error(`${JSON.stringify(text)} is not a media reference: media://<job_id>/<file>`);
  return path;
}

export interface CallMedia {
  /** Local path of a copy that lives as long as the call. @throws Error when there is no such object */
  download(reference: string): Promise<string>;
  /** @throws Error when `reference` is no media reference */
  upload(localPath: string, reference: string, contentType: string): Promise<void>;
  /** A path for a file of this call; nothing is created there. */
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
