/** What is known of files: one state of each, and the bytes that a project has. */

import type { Db } from '../connect.ts';
import { hasSqlState } from '../sql-state.ts';

export interface MediaPlace {
  readonly job_id: string;
  readonly file: string;
}

export interface ObjectFacts {
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
  const { rows } = await db.raw<{ rows: FactsRow[] }>(
    `select ${factsColumns} from media_object where job_id = ? and file = ? and state = 'stored'`,
    [job_id, file],
  );
  return rows[0] === undefined ? null : toFacts(rows[0]);
}

/** Of these files, by file. */
export async function listFacts(
  db: Db,
  jobId: string,
  files: readonly string[],
): Promise<ReadonlyMap<string, ObjectFacts>> {
  const { rows } = await db.raw<{ rows: (FactsRow & { file: string })[] }>(
    `select file, ${factsColumns} from media_object where job_id = ? and file = any (?) and state = 'stored'`,
    [jobId, [...files]],
  );
  return new Map(rows.map(({ file, ...row }) => [file, toFacts(row)]));
}

/** The job was still seen, and deleted before the row that names it stood. */
function hasLostJob(thrown: unknown): boolean {
  return hasSqlState(thrown, 'foreign_key_violation');
}

/** Uploads that announced these bytes have come with them. @returns false: there is no such job (any more), of which nothing is kept */
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

/** Whether an upload was announced for this place and has not been seen there. */
export async function isAwaited(db: Db, { job_id, file }: MediaPlace): Promise<boolean> {
  const { rows } = await db.raw<{ rows: [{ is_awaited: boolean }] }>(
    `select exists (select from media_object
       where job_id = :job_id and file = :file and state = 'announced' and not has_come) as is_awaited`,
    { job_id, file },
  );
  return rows[0].is_awaited;
}

/** @param etag only of this state of it */
export async function forgetFacts(db: Db, { job_id, file }: MediaPlace, etag?: string): Promise<void> {
  await db.raw(
    `delete from media_object where job_id = :job_id and file = :file and state = 'stored'
       and etag = coalesce(:etag, etag)`,
    { job_id, file, etag: etag ?? null },
  );
}

/** Announced uploads too: nobody can come with one any more. */
export async function forgetJob(db: Db, jobId: string): Promise<void> {
  await db.raw('delete from media_object where job_id = ?', [jobId]);
}

/**
 * The bytes of the project that owns the job. Of a place count those of the largest file that stands there or was announced
 * for it and has not come yet: there will be one.
 *
 * @param at a place that is about to be written, which does not count; it may be no job's
 */
export async function sumBytes(db: Db, { job_id, file }: MediaPlace): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ bytes: string }] }>(
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
  return Number(rows[0].bytes);
}
