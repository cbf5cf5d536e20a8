/** Uploads that were allowed, and may still come. */
import type { Db } from '../connect.ts';
import type { MediaPlace, ObjectFacts } from './media-object.ts';

export interface AnnouncedUpload extends MediaPlace, Omit<ObjectFacts, 'etag'> {
  /** The store's name for an upload in parts. */
  readonly upload_id: string | null;
}

export interface FoundUpload extends AnnouncedUpload {
  /** It has come, and nothing has replaced it since, as far as we were told. */
  readonly is_stored: boolean;
  /** The state of the file that it has made; null: of none yet. */
  readonly etag: string | null;
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

/** @returns null when it is unknown, too old, was not what had been announced, or its file was replaced */
export async function findUpload(db: Db, token: string, withinHours: number): Promise<FoundUpload | null> {
  const { rows } = await db.raw<{ rows: (Omit<FoundUpload, 'size'> & { size: string })[] }>(
    `select job_id, file, size, encode(sha256, 'hex') as sha256, content_type, upload_id, etag,
         state = 'stored' as is_stored from media_object
       where token = decode(?, 'hex') and created_at > now() - make_interval(hours => ?)`,
    [token, withinHours],
  );
  return rows[0] === undefined ? null : { ...rows[0], size: Number(rows[0].size) };
}

/** Notes what the parts have made, before somebody reads whether it is what was announced. */
export async function noteMade(db: Db, token: string, etag: string): Promise<void> {
  await db.raw(`update media_object set etag = ? where token = decode(?, 'hex') and state = 'announced'`, [
    etag,
    token,
  ]);
}

/** It has come: its announcement goes, and the row of its file, if that is still of this state, answers to its token. */
export function endUpload(
  db: Db,
  token: string,
  { job_id, file, etag }: MediaPlace & Pick<ObjectFacts, 'etag'>,
): Promise<void> {
  return db.transaction(async (trx) => {
    await dropUploads(trx, [token]);
    await trx.raw(
      `update media_object set token = decode(?, 'hex') where job_id = ? and file = ? and state = 'stored' and etag = ?`,
      [token, job_id, file, etag],
    );
  });
}

export interface OverdueUpload extends MediaPlace {
  /** Hex. */
  readonly token: string;
  /** As text: a Date has no microseconds. */
  readonly announced_at: string;
}

/** @param after the last one of those before; null: from the oldest on */
export async function listOverdueUploads(
  db: Db,
  { hours, limit, after }: { hours: number; limit: number; after: OverdueUpload | null },
): Promise<readonly OverdueUpload[]> {
  const { rows } = await db.raw<{ rows: OverdueUpload[] }>(
    `select job_id, file, encode(token, 'hex') as token, created_at::text as announced_at from media_object
       where state = 'announced' and created_at < now() - make_interval(hours => :hours)
         and (created_at, token) > (:at::timestamptz, decode(:token, 'hex'))
       order by created_at, token limit :limit`,
    { hours, limit, at: after?.announced_at ?? '-infinity', token: after?.token ?? '' },
  );
  return rows;
}

/** They will not come any more, or have come. @param tokens hex. @returns how many */
export async function dropUploads(db: Db, tokens: readonly string[]): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `delete from media_object where state = 'announced'
       and token = any (array(select decode(t, 'hex') from unnest(?::text[]) t))`,
    [[...tokens]],
  );
  return rowCount;
}
