/** Uploads that were allowed, and may still come. */
import type { Db } from '../connect.ts';
import type { MediaPlace, ObjectFacts } from './media-object.ts';

export interface AnnouncedUpload extends MediaPlace, Omit<ObjectFacts, 'etag'> {
  /** The store's name for an upload in parts. */
  readonly upload_id: string | null;
}

/** @param token hex of the SHA-256 of what allows it */
export async function announceUpload(
  db: Db,
  projectId: string,
  upload: AnnouncedUpload & { readonly token: string },
): Promise<void> {
  await db.raw(
    `insert into media_object (project_id, job_id, file, size, sha256, content_type, state, token, upload_id)
     values (:projectId, :job_id, :file, :size, decode(:sha256, 'hex'), :content_type, 'announced',
       decode(:token, 'hex'), :upload_id)`,
    { projectId, ...upload },
  );
}

/** @returns null when it is unknown, has come, or is too old */
export async function findUpload(
  db: Db,
  token: string,
  withinHours: number,
): Promise<AnnouncedUpload | null> {
  const { rows } = await db.raw<{ rows: (Omit<AnnouncedUpload, 'size'> & { size: string })[] }>(
    `select job_id, file, size, encode(sha256, 'hex') as sha256, content_type, upload_id from media_object
       where token = decode(?, 'hex') and created_at > now() - make_interval(hours => ?)`,
    [token, withinHours],
  );
  return rows[0] === undefined ? null : { ...rows[0], size: Number(rows[0].size) };
}

/** Those that can come no more. @returns how many */
export async function purgeUploads(db: Db, afterHours: number): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `delete from media_object where state = 'announced' and created_at < now() - make_interval(hours => ?)`,
    [afterHours],
  );
  return rowCount;
}
