/**
 * Limits the bytes of a project's files, announced uploads included. Concurrent uploads may exceed the limit together.
 *
 * An announcement ends when its upload can no longer happen. An upload that went straight to a bucket may be unknown:
 * its path is checked first, so that a file there gets its row and counts.
 */
import type { MediaPath } from '@capstan/core/contracts/media';
import { AppError } from '@capstan/core/errors/app-error';
import type { Db } from '../../db/connect.ts';
import { dropUploads, listOverdueUploads, type OverdueUpload, sumBytes } from '../../db/media.ts';

export interface Quota {
  readonly db: Db;
  /** The limit of a project's files together; 0 = none. */
  readonly bytesPerProject: number;
}

/** @returns how many bytes the file may have. @throws AppError `media_quota` when the limit is exceeded already */
export async function requireRoom(
  { db, bytesPerProject }: Quota,
  path: MediaPath,
  bytes: number,
): Promise<number> {
  if (bytesPerProject === 0) return Number.POSITIVE_INFINITY;
  const others = await sumBytes(db, path);
  const room = bytesPerProject - others;
  if (room >= 0 && bytes <= room) return room;
  throw new AppError(
    'media_quota',
    `the other files of the project have ${others} bytes, and this one would have ${bytes} or more; it may have ${bytesPerProject} together`,
    { details: { stored_bytes: others, file_bytes: bytes, allowed_bytes: bytesPerProject } },
  );
}

/** No announced upload is valid for longer. */
export const announcedHours = 24;

/** Announcements that are checked together, and deleted by one statement. */
const batch = 50;
/** No batch begins after this time, because shutdown waits for it; the next call does the rest. */
const longestMs = 10_000;

/**
 * @param look describes the file at a path, if there is one
 * @returns how many announcements were deleted. @throws the first error of `look`; its announcement stays
 */
export async function settleUploads(db: Db, look: (path: MediaPath) => Promise<unknown>): Promise<number> {
  let settled = 0;
  let after: OverdueUpload | null = null;
  const faults: unknown[] = [];
  const began = performance.now();
  while (performance.now() - began < longestMs) {
    const uploads = await listOverdueUploads(db, { hours: announcedHours + 1, limit: batch, after });
    const looks = await Promise.allSettled(uploads.map(({ job_id, file }) => look({ job_id, file })));
    const seen = uploads.filter((_, n) => looks[n]?.status === 'fulfilled');
    settled += await dropUploads(
      db,
      seen.map(({ token }) => token),
    );
    for (const end of looks) if (end.status === 'rejected') faults.push(end.reason);
    if (uploads.length < batch || seen.length === 0) break;
    after = uploads.at(-1) ?? null;
  }
  if (faults.length > 0) throw faults[0];
  return settled;
}
