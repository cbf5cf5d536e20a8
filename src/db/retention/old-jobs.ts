/**
 * Jobs that no run is left of, and whose files nobody is going to read: none that a run under way, a stored pipeline or a
 * schedule names. A job is also kept while it is in use by itself: for as long after a file came into it, or was announced,
 * as after its own beginning. Files stand in no table's foreign keys, so this looks for their names.
 */
import type { Db } from '../connect.ts';
import { lineOf } from './deleted-batch.ts';

export interface JobPage {
  readonly createdBefore: Date;
  /** Ids of jobs that were made later than this are not looked at. */
  readonly upTo: string;
  /** By id, after this one. */
  readonly after: string;
  readonly limit: number;
}

/** Runs that have ended before count as gone where `isTrial`. */
export interface JobSelection extends JobPage {
  readonly isTrial: boolean;
}

/** A file that was announced may come past us, so that nobody would know of it. */
const hasYoungFile = `exists (select from media_object o where o.job_id = j.job_id and o.created_at >= :createdBefore)`;

/** Not locked yet, nor looked at for who names them. */
export async function listRunlessJobs(
  db: Db,
  { createdBefore, upTo, after, limit, isTrial }: JobSelection,
): Promise<readonly string[]> {
  const { rows } = await db.raw<{ rows: { job_id: string }[] }>(
    `select job_id from job j
     where job_id > :after and job_id < :upTo and created_at < :createdBefore
       and not exists (select from run r where r.job_id = j.job_id
         and (not :isTrial or r.finished_at is null or r.finished_at >= :createdBefore))
       and not ${hasYoungFile}
     order by job_id limit :limit`,
    { createdBefore, upTo, after, limit, isTrial },
  );
  return rows.map(({ job_id }) => job_id);
}

/** Ids of jobs whose files are named where something may still read them, in the projects of these jobs. */
async function listNamed(db: Db, jobIds: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await db.raw<{ rows: { job_id: string }[] }>(
    `with project as (select distinct project_id from job where job_id = any (?)),
     open as (
       select r.run_id, r.job_id, r.digest from project p join run r using (project_id) where r.finished_at is null
     ), text as (
       select j.body::text as body from open join job j using (job_id)
       union all select d.body::text from (select distinct digest from open) o join definition d using (digest)
       union all select s.output::text from open o join step s using (run_id) where s.output is not null
       union all select d.body::text from project p join pipeline_version v using (project_id) join definition d using (digest)
       union all select s.body::text from project p join schedule s using (project_id) where s.deleted_at is null
     )
     select distinct found.match[1] as job_id
     from text cross join lateral regexp_matches(body, 'media://(job_[0-9a-f-]+)', 'g') found (match)`,
    [[...jobIds]],
  );
  return new Set(rows.map(({ job_id }) => job_id));
}

/** Jobs that runs or files have come to since. Read after the locks: what was committed before them is seen. */
async function listUsed(
  trx: Db,
  jobIds: readonly string[],
  { isTrial, createdBefore }: Pick<JobSelection, 'isTrial' | 'createdBefore'>,
): Promise<ReadonlySet<string>> {
  const { rows } = await trx.raw<{ rows: { job_id: string }[] }>(
    `select job_id from job j where job_id = any (:jobIds)
       and (not :isTrial and exists (select from run r where r.job_id = j.job_id) or ${hasYoungFile})`,
    { jobIds: [...jobIds], isTrial, createdBefore },
  );
  return new Set(rows.map(({ job_id }) => job_id));
}

/** Keeps new runs and files from these jobs until the transaction ends. @returns those that may go */
export async function lockUnneededJobs(
  trx: Db,
  jobIds: readonly string[],
  selection: Pick<JobSelection, 'isTrial' | 'createdBefore'>,
): Promise<readonly string[]> {
  const { rows } = await trx.raw<{ rows: { job_id: string }[] }>(
    'select job_id from job where job_id = any (?) order by job_id for update skip locked',
    [[...jobIds]],
  );
  const locked = rows.map(({ job_id }) => job_id);
  const [named, used] = [await listNamed(trx, locked), await listUsed(trx, locked, selection)];
  return locked.filter((id) => !named.has(id) && !used.has(id));
}

/** A line of JSON for each, as of the rows of runs, and for what is known of their files. */
export async function listJobLines(trx: Db, jobIds: readonly string[]): Promise<readonly string[]> {
  const { rows } = await trx.raw<{ rows: { line: string }[] }>(
    `select ${lineOf('job', 'j')} from job j where job_id = any (:jobIds)
     union all select ${lineOf('media_object', 'o')} from media_object o where job_id = any (:jobIds)`,
    { jobIds: [...jobIds] },
  );
  return rows.map(({ line }) => line);
}

export async function deleteJobs(trx: Db, jobIds: readonly string[]): Promise<number> {
  return trx('job').whereIn('job_id', jobIds).delete();
}
