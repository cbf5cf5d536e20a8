/**
 * Files below a folder that others may write too: instances do. No link is followed, neither as the last part of a path
 * nor on the way to it, because it could name any file that this process may read; and nothing that is no plain file is
 * waited for (a pipe without a writer would hold a thread).
 */
import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, realpath } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';

export function hasCode(error: unknown, codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

/** A link is as good as nothing. */
export function nullWhenMissing(error: unknown): null {
  if (hasCode(error, ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO'])) return null;
  throw error;
}

/** Null when it is missing, or reached through a link. */
export async function findFolder(root: string, folder: string): Promise<string | null> {
  const [realRoot, real] = await Promise.all(
    [root, folder].map((one) => realpath(one).catch(nullWhenMissing)),
  );
  if (realRoot == null || real == null) return null;
  return real === join(realRoot, relative(root, folder)) ? real : null;
}

/** Null when there is a link on the way. */
export async function makeFolder(root: string, folder: string): Promise<string | null> {
  await mkdir(folder, { recursive: true });
  return findFolder(root, folder);
}

const quietRead = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** As often as a file may be replaced while it is opened. */
const attempts = 20;

/** Opens what stands at this place of the folder itself; null when that is no plain file. */
export async function openFile(root: string, file: string): Promise<FileHandle | null> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const handle = await open(file, quietRead).catch(nullWhenMissing);
    if (handle === null) return null;
    const place = await judge(root, file, handle).catch(() => 'elsewhere');
    if (place === 'here') return handle;
    await handle.close();
    if (place === 'elsewhere') return null;
  }
  return null;
}

/** A folder may be exchanged for a link and back: only what is still found at its place without one was opened there. */
async function judge(
  root: string,
  file: string,
  handle: FileHandle,
): Promise<'here' | 'replaced' | 'elsewhere'> {
  const opened = await handle.stat({ bigint: true });
  if (!opened.isFile() || (await findFolder(root, dirname(file))) === null) return 'elsewhere';
  const found = await lstat(file, { bigint: true }).catch(nullWhenMissing);
  if (found === null) return 'elsewhere';
  return found.ino === opened.ino && found.dev === opened.dev ? 'here' : 'replaced';
}
