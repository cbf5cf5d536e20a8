/** What is known of files: one state of each, and the bytes that a project has. */
import type { Db } from '../connect.ts';

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

/** By file. */
export async function listFacts(db: Db, jobId: string): Promise<ReadonlyMap<string, ObjectFacts>> {
  const { rows } = await db.raw<{ rows: (FactsRow & { file: string })[] }>(
    `select file, ${factsColumns} from media_object where job_id = ? and state = 'stored'`,
    [jobId],
  );
  return new Map(rows.map(({ file, ...row }) => [file, toFacts(row)]));
}

/** @returns false: there is no such job (any more), of which nothing is kept */
export async function keepFacts(db: Db, { job_id, file }: MediaPlace, facts: ObjectFacts): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `insert into media_object (project_id, job_id, file, size, sha256, etag, content_type, state)
     select project_id, job_id, :file, :size, decode(:sha256, 'hex'), :etag, :content_type, 'stored'
       from job where job_id = :job_id
     on conflict (job_id, file) where state = 'stored' do update set size = excluded.size, sha256 = excluded.sha256,
       etag = excluded.etag, content_type = excluded.content_type, created_at = excluded.created_at`,
    { job_id, file, ...facts },
  );
  return rowCount > 0;
}

export async function forgetFacts(db: Db, { job_id, file }: MediaPlace): Promise<void> {
  await db.raw(`delete from media_object where job_id = ? and file = ? and state = 'stored'`, [job_id, file]);
}

/** Announced uploads too: nobody can come with one any more. */
export async function forgetJob(db: Db, jobId: string): Promise<void> {
  await db.raw('delete from media_object where job_id = ?', [jobId]);
}

/**
 * The bytes of the project that owns the job, with those of uploads that were announced and have not come.
 *
 * @param at a place that is about to be written, which does not count; it may be no job's
 */
export async function sumBytes(db: Db, { job_id, file }: MediaPlace): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ bytes: string }] }>(
    `select coalesce(sum(o.size), 0) as bytes from media_object o
       where o.project_id = (select project_id from job where job_id = :job_id)
         and not (o.job_id = :job_id and o.file = :file)
         and not (o.state = 'announced' and exists (
           select from media_object s where s.job_id = o.job_id and s.file = o.file and s.state = 'stored'
             and s.sha256 = o.sha256))`,
    { job_id, file },
  );
  return Number(rows[0].bytes);
}
