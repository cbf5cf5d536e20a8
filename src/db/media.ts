/**
 * Known facts about files: one state of each, the bytes of a project, and uploads that were allowed and may still
 * arrive.
 */
import type { Db } from './connect.ts';
import { hasSqlState, query } from './statements.ts';

interface MediaPlace {
  readonly job_id: string;
  readonly file: string;
}

interface ObjectFacts {
  readonly size: number;
  /** Hex. */
  readonly sha256: string;
  readonly content_type: string;
  /** The store's name for this state of the file. */
  readonly etag: string;
}

interface FactsRow extends Omit<ObjectFacts, 'size'> {
  /** bigint as text */
  readonly size: string;
}

const factsColumns = `size, encode(sha256, 'hex') as sha256, content_type, etag`;

function toFacts({ size, ...row }: FactsRow): ObjectFacts {
  return { ...row, size: Number(size) };
}

export async function findFacts(db: Db, { job_id, file }: MediaPlace): Promise<ObjectFacts | null> {
  const row = await query<FactsRow>(db).first(
    `select ${factsColumns} from media_object where job_id = ? and file = ? and state = 'stored'`,
    [job_id, file],
  );
  return row === undefined ? null : toFacts(row);
}

/** Facts about these files, by file. */
export async function listFacts(
  db: Db,
  jobId: string,
  files: readonly string[],
): Promise<ReadonlyMap<string, ObjectFacts>> {
  const rows = await query<FactsRow & { file: string }>(db).all(
    `select file, ${factsColumns} from media_object where job_id = ? and file = any (?) and state = 'stored'`,
    [jobId, [...files]],
  );
  return new Map(rows.map(({ file, ...row }) => [file, toFacts(row)]));
}

/** The job was deleted after it was read and before the row that refers to it was written. */
function hasLostJob(thrown: unknown): boolean {
  return hasSqlState(thrown, 'foreign_key_violation');
}

/**
 * Marks announced uploads of these bytes as arrived.
 * @returns false if the job does not exist (any more); nothing was kept
 */
export async function keepFacts(db: Db, { job_id, file }: MediaPlace, facts: ObjectFacts): Promise<boolean> {
  const kept = db.raw<{ rowCount: number }>(
    `with come as (
       update media_object set has_come = true
       where job_id = :job_id and file = :file and state = 'announced' and sha256 = decode(:sha256, 'hex') and not has_come
     )
     insert into media_object (project_id, job_id, file, size, sha256, etag, content_type, state)
     select project_id, job_id, :file, :size, decode(:sha256, 'hex'), :etag, :content_type, 'stored'
       from job where job_id = :job_id
     on conflict (job_id, file) where state = 'stored' do update set size = excluded.size, sha256 = excluded.sha256,
       etag = excluded.etag, content_type = excluded.content_type, created_at = excluded.created_at,
       token = case when media_object.etag = excluded.etag then media_object.token end`,
    { job_id, file, ...facts },
  );
  return kept.then(
    ({ rowCount }) => rowCount > 0,
    (error: unknown) => {
      if (hasLostJob(error)) return false;
      throw error;
    },
  );
}

/** Whether an upload was announced for this file and has not arrived. */
export async function isAwaited(db: Db, { job_id, file }: MediaPlace): Promise<boolean> {
  const row = await query<{ is_awaited: boolean }>(db).one(
    `select exists (select from media_object
       where job_id = :job_id and file = :file and state = 'announced' and not has_come) as is_awaited`,
    { job_id, file },
  );
  return row.is_awaited;
}

/** @param etag deletes the facts only of this state */
export async function forgetFacts(db: Db, { job_id, file }: MediaPlace, etag?: string): Promise<void> {
  await db.raw(
    `delete from media_object where job_id = :job_id and file = :file and state = 'stored'
       and etag = coalesce(:etag, etag)`,
    { job_id, file, etag: etag ?? null },
  );
}

/** Deletes announced uploads too: none can arrive any more. */
export async function forgetJob(db: Db, jobId: string): Promise<void> {
  await db.raw('delete from media_object where job_id = ?', [jobId]);
}

/**
 * Sums the bytes of the project that owns the job. A file counts with the larger of its stored size and its announced
 * sizes that have not arrived yet. The file itself does not count: it is about to be written. Its job need not exist.
 */
export async function sumBytes(db: Db, { job_id, file }: MediaPlace): Promise<number> {
  const row = await query<{ bytes: string }>(db).one(
    `with own as (select project_id from job where job_id = :job_id),
       announced as (select job_id, file, max(size) as size from media_object
         where project_id = (select project_id from own) and state = 'announced' and not has_come
           and not (job_id = :job_id and file = :file) group by job_id, file)
     select coalesce((select sum(size) from media_object
         where project_id = (select project_id from own) and state = 'stored'), 0)
       - coalesce((select size from media_object where job_id = :job_id and file = :file and state = 'stored'), 0)
       + coalesce((select sum(greatest(a.size - coalesce(s.size, 0), 0)) from announced a
         left join media_object s on s.job_id = a.job_id and s.file = a.file and s.state = 'stored'), 0) as bytes`,
    { job_id, file },
  );
  return Number(row.bytes);
}

// Uploads that were allowed and may still arrive.

interface AnnouncedUpload extends MediaPlace, Omit<ObjectFacts, 'etag'> {
  /** The store's id of a multipart upload. */
  readonly upload_id: string | null;
}

export interface FoundUpload extends AnnouncedUpload {
  /** It has arrived, and as far as we know nothing has replaced it since. */
  readonly is_stored: boolean;
  /** The state of the file that it made; null: none yet. */
  readonly etag: string | null;
}

/** @param token SHA-256 of the upload's token, hex */
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

/** @returns null if it is unknown or too old, if it did not match its announcement, or if its file was replaced */
export async function findUpload(db: Db, token: string, withinHours: number): Promise<FoundUpload | null> {
  const row = await query<Omit<FoundUpload, 'size'> & { size: string }>(db).first(
    `select job_id, file, size, encode(sha256, 'hex') as sha256, content_type, upload_id, etag,
         state = 'stored' as is_stored from media_object
       where token = decode(?, 'hex') and created_at > now() - make_interval(hours => ?)`,
    [token, withinHours],
  );
  return row === undefined ? null : { ...row, size: Number(row.size) };
}

/** Notes the file that the parts have made, before it is checked against the announcement. */
export async function noteMade(db: Db, token: string, etag: string): Promise<void> {
  await db.raw(`update media_object set etag = ? where token = decode(?, 'hex') and state = 'announced'`, [
    etag,
    token,
  ]);
}

/**
 * The upload has arrived: its announcement is deleted. Its token moves to the row of the file, if that is still in this
 * state.
 */
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
  /** Text, because a Date has no microseconds. */
  readonly announced_at: string;
}

/** @param after the last upload of the previous page; null: begin with the oldest */
export function listOverdueUploads(
  db: Db,
  { hours, limit, after }: { hours: number; limit: number; after: OverdueUpload | null },
): Promise<readonly OverdueUpload[]> {
  return query<OverdueUpload>(db).all(
    `select job_id, file, encode(token, 'hex') as token, created_at::text as announced_at from media_object
       where state = 'announced' and created_at < now() - make_interval(hours => :hours)
         and (created_at, token) > (:at::timestamptz, decode(:token, 'hex'))
       order by created_at, token limit :limit`,
    { hours, limit, at: after?.announced_at ?? '-infinity', token: after?.token ?? '' },
  );
}

/** Deletes announcements of uploads that have arrived or will not. @param tokens hex. @returns how many */
export function dropUploads(db: Db, tokens: readonly string[]): Promise<number> {
  return query(db).written(
    `delete from media_object where state = 'announced'
       and token = any (array(select decode(t, 'hex') from unnest(?::text[]) t))`,
    [[...tokens]],
  );
}
