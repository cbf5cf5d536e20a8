/**
 * How many bytes of files a project may have, announced uploads included. Uploads of the same moment may pass it
 * together.
 *
 * Announcements end when the upload can come no more. An upload that went straight to a bucket was perhaps never
 * heard of: its place is looked at, so that a file there gets its row and counts, before the announcement goes.
 */
import type { MediaPath } from '../../contracts/media.ts';
import type { Db } from '../../db/connect.ts';
import { dropUploads, listOverdueUploads, type OverdueUpload, sumBytes } from '../../db/media.ts';
import { AppError } from '../../errors/app-error.ts';

export interface Quota {
  readonly db: Db;
  /** The limit of a project's files together; 0 = none. */
  readonly bytesPerProject: number;
}

/** @returns how many bytes the file may have. @throws AppError `media_quota` when those that it has are more */
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

/** No upload that was announced is good for longer. */
export const announcedHours = 24;

/** Looked at together, and deleted by one statement. */
const batch = 50;
/** No batch begins after this time, since a process that stops waits for it; the next call takes the rest. */
const longestMs = 10_000;

/**
 * @param look describes the file at a place, if there is one
 * @returns how many announcements went. @throws what the first look answered that failed; its announcement stays
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
