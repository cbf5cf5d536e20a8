/** Copies the files of all jobs from one media store, a folder, into another one, which keeps equal files. */
import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { formatMediaReference, type MediaPath } from '@capstan/core/contracts/media';
import { ConfigurationError } from '@capstan/core/errors/start-errors';
import { createMediaStore } from '@capstan/media-store/create-media-store';
import type { MediaStore } from '@capstan/media-store/media-store';

export interface CopiedMedia {
  readonly copied: number;
  readonly bytes: number;
  /** Files that the target had, by an earlier try. */
  readonly kept: number;
}

/** The store's own folders begin with a letter that no job id has. */
async function listJobs(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('~'))
    .map(({ name }) => name);
}

/** @returns the bytes that were copied; null: the target had it @throws ConfigurationError when it has another file */
async function copyFile(source: MediaStore, target: MediaStore, path: MediaPath): Promise<number | null> {
  const opened = await source.open(path);
  if (opened === null) return null;
  const { size, content_type: contentType, sha256 } = opened.object;
  const there = await target.head(path).catch(async (error: unknown) => {
    await opened.close();
    throw error;
  });
  const isSame = there !== null && there.size === size && there.sha256 === sha256;
  const isOther = there !== null && (there.size !== size || (there.sha256 ?? sha256) !== sha256);
  if (isSame || isOther) await opened.close();
  if (isSame) return null;
  if (isOther)
    throw new ConfigurationError(
      `MEDIA_URL, ${target.name}, has another file at ${formatMediaReference(path)}: choose an empty folder or prefix`,
    );
  const expected = sha256 === null ? {} : { expected: sha256 };
  await target.put(path, await opened.read(), { contentType, limitBytes: size, ...expected });
  return size;
}

/** @param from a file URL @throws ConfigurationError when both are one folder, or the target has another file */
export async function copyMedia(from: string, to: string): Promise<CopiedMedia> {
  const [source, target] = [await createMediaStore(from), await createMediaStore(to)];
  if (source.name === target.name)
    throw new ConfigurationError(
      `MEDIA_URL is the folder to copy from, ${from}: name the media store of the servers`,
    );
  await target.probe();
  let [copied, bytes, kept] = [0, 0, 0];
  for (const job_id of await listJobs(fileURLToPath(from))) {
    const { files } = await source.list(job_id, Number.MAX_SAFE_INTEGER);
    for (const { file } of files) {
      const size = await copyFile(source, target, { job_id, file });
      if (size === null) kept += 1;
      else [copied, bytes] = [copied + 1, bytes + size];
    }
  }
  return { copied, bytes, kept };
}
