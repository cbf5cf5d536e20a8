/**
 * Uploads that were announced and can come no more. One that went straight to a bucket was perhaps never heard of: its
 * place is looked at, so that a file there gets its row and counts, before the announcement goes.
 */
import type { MediaPath } from '../../contracts/media.ts';
import type { Db } from '../../db/connect.ts';
import { dropUploads, listOverdueUploads, type OverdueUpload } from '../../db/media/media-upload.ts';

/** No upload that was announced is good for longer. */
export const announcedHours = 24;

/** Looked at together, and deleted by one statement. */
const batch = 50;
/** After which no batch begins: a process that stops waits for it. What is left is for the next call. */
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
