/**
 * Jobs that no run is left of, and whose files nobody is going to read: none that a run under way, a stored pipeline or a
 * schedule names (named-jobs.ts). A job is also kept while it is in use by itself: for as long after a file came into it,
 * or was announced, as after its own beginning.
 */
import type { Db } from '../connect.ts';
import { lineOf } from './deleted-batch.ts';
import { listNames } from './named-jobs.ts';

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

export interface OwnedJob {
  readonly job_id: string;
  readonly project_id: string;
}

/** Not locked yet, nor looked at for who names them. */
export async function listRunlessJobs(
  db: Db,
  { createdBefore, upTo, after, limit, isTrial }: JobSelection,
): Promise<readonly OwnedJob[]> {
  const { rows } = await db.raw<{ rows: OwnedJob[] }>(
    `select job_id, project_id from job j
     where job_id > :after and job_id < :upTo and created_at < :createdBefore
       and not exists (select from run r where r.job_id = j.job_id
         and (not :isTrial or r.finished_at is null or r.finished_at >= :createdBefore))
       and not ${hasYoungFile}
     order by job_id limit :limit`,
    { createdBefore, upTo, after, limit, isTrial },
  );
  return rows;
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

/** What was found of names before: those of them, and the moment from which on there may be others. */
export interface KnownNames {
  readonly named: ReadonlySet<string>;
  readonly since: Date;
}

/**
 * Keeps new runs, new names (db/run/job.ts) and new files from these jobs until the transaction ends.
 *
 * @param known by project @returns those that may go
 */
export async function lockUnneededJobs(
  trx: Db,
  jobs: readonly OwnedJob[],
  {
    known,
    ...selection
  }: Pick<JobSelection, 'isTrial' | 'createdBefore'> & { readonly known: ReadonlyMap<string, KnownNames> },
): Promise<readonly string[]> {
  const { rows } = await trx.raw<{ rows: OwnedJob[] }>(
    'select job_id, project_id from job where job_id = any (?) order by job_id for update skip locked',
    [jobs.map(({ job_id }) => job_id)],
  );
  const named = new Set<string>();
  for (const projectId of new Set(rows.map(({ project_id }) => project_id))) {
    const names = known.get(projectId);
    if (names === undefined) continue;
    for (const id of names.named) named.add(id);
    for (const id of (await listNames(trx, { projectId, since: names.since })) ?? []) named.add(id);
  }
  const locked = rows.filter(({ project_id }) => known.has(project_id)).map(({ job_id }) => job_id);
  const used = await listUsed(trx, locked, selection);
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

/** Deletes the rows of jobs whose files are still to go, which is noted. @returns how many */
export async function leaveJobs(trx: Db, jobIds: readonly string[]): Promise<number> {
  const bindings = { jobIds: [...jobIds] };
  await trx.raw('delete from media_object where job_id = any (:jobIds)', bindings);
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `with gone as (delete from job where job_id = any (:jobIds) returning job_id, project_id)
     insert into leaving_job (job_id, project_id) select job_id, project_id from gone`,
    bindings,
  );
  return rowCount;
}

/** Jobs whose files are to go, by id. @param projectId of this one alone */
export async function listLeavingJobs(
  db: Db,
  { after, limit, projectId = null }: { after: string; limit: number; projectId?: string | null },
): Promise<readonly string[]> {
  const { rows } = await db.raw<{ rows: { job_id: string }[] }>(
    `select job_id from leaving_job
     where job_id > :after and project_id = coalesce(:projectId, project_id) order by job_id limit :limit`,
    { after, limit, projectId },
  );
  return rows.map(({ job_id }) => job_id);
}

/** Their files are gone. */
export async function forgetLeavingJobs(db: Db, jobIds: readonly string[]): Promise<void> {
  await db('leaving_job')
    .whereIn('job_id', [...jobIds])
    .delete();
}

export async function deleteJobs(trx: Db, jobIds: readonly string[]): Promise<number> {
  return trx('job').whereIn('job_id', jobIds).delete();
}
