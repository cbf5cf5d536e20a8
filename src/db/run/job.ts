import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { RunState } from '@capstan/core/contracts/run';
import type { Db } from '../connect.ts';
import { query, toJson } from '../statements.ts';

export interface JobKey {
  readonly project_id: string;
  readonly job_id: string;
}

export async function insertJob(db: Db, { project_id, job_id }: JobKey, job: JsonObject): Promise<void> {
  await db.raw('insert into job (job_id, project_id, body) values (?, ?, ?)', [
    job_id,
    project_id,
    toJson(job),
  ]);
}

export async function findJob(
  db: Db,
  { project_id, job_id }: JobKey,
): Promise<{ body: JsonObject; created_at: Date } | null> {
  const row = await query<{ body: JsonObject; created_at: Date }>(db).first(
    'select body, created_at from job where job_id = ? and project_id = ?',
    [job_id, project_id],
  );
  return row ?? null;
}

export function jobExists(db: Db, { project_id, job_id }: JobKey): Promise<boolean> {
  return query(db).some('select 1 from job where job_id = ? and project_id = ?', [job_id, project_id]);
}

/** Lists those that belong to the project. */
export async function listOwnedJobs(
  db: Db,
  projectId: string,
  jobIds: readonly string[],
): Promise<readonly string[]> {
  const rows = await query<{ job_id: string }>(db).all(
    'select job_id from job where job_id = any (?) and project_id = ?',
    [[...jobIds], projectId],
  );
  return rows.map(({ job_id }) => job_id);
}

/**
 * Prevents the deletion of jobs, and so of their files, until the transaction ends. A deletion takes a conflicting
 * lock, and searches for references after it (db/deletion/old-jobs.ts).
 *
 * @returns the jobs that exist
 */
export async function lockJobs(
  trx: Db,
  projectId: string,
  jobIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await query<{ job_id: string }>(trx).all(
    'select job_id from job where job_id = any (?) and project_id = ? order by job_id for key share',
    [[...jobIds], projectId],
  );
  return new Set(rows.map(({ job_id }) => job_id));
}

/** Newest first. */
export function listRunsOfJob(
  db: Db,
  jobId: string,
  limit: number,
): Promise<{ run_id: string; state: RunState }[]> {
  return query<{ run_id: string; state: RunState }>(db).all(
    'select run_id, state from run where job_id = ? order by created_at desc, run_id desc limit ?',
    [jobId, limit],
  );
}
