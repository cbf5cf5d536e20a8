/** A folder in memory for the temporary data of a test run: each of its databases has five hundred files. */
import { accessSync, constants, statfsSync } from 'node:fs';

const folder = '/dev/shm';
/** A run's databases and their log stay far below this; a container has 64 MiB there by default. */
const roomBytes = 2 * 1024 ** 3;

/** @returns no folder where there is no such disk, or little room on it */
export function findMemoryDisk(): readonly string[] {
  try {
    accessSync(folder, constants.W_OK);
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= roomBytes ? [folder] : [];
  } catch {
    return [];
  }
}
