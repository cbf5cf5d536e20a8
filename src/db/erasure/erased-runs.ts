/** Runs of a project that is being erased. */
import type { Db } from '../connect.ts';
import { deleteRuns, type RowCounts } from '../retention/run-parts.ts';
import { type ErasedProject, eraseAttempts } from './erased-attempts.ts';
import { deleteUnnamed } from './erased-definitions.ts';

export async function listRunsToEnd(db: Db, projectId: string, limit: number): Promise<readonly string[]> {
  return db('run')
    .where({ project_id: projectId })
    .whereNull('finished_at')
    .whereRaw(`cancel_mode is distinct from 'terminate'`)
    .limit(limit)
    .pluck('run_id');
}

export interface ErasedRun {
  readonly run_id: string;
  readonly pipeline: string;
  /** Of the schedule's start that made it. */
  readonly schedule_start: string | null;
}

/** No start of one that ended before it was known to have started comes any more after so long. */
const startOverS = 60;

const hasOpenCall = `exists (select from attempt a
  where a.run_id = r.run_id and a.state in ('reserved', 'dispatched'))`;

/** Ended, with no run below and no call open. */
export async function listErasableRuns(
  db: Db,
  projectId: string,
  limit: number,
): Promise<readonly ErasedRun[]> {
  const { rows } = await db.raw<{ rows: ErasedRun[] }>(
    `select run_id, pipeline, case when schedule_id is not null then parent_workflow_id end as schedule_start
     from run r where project_id = :projectId and finished_at is not null
       and (start_delivered_at is not null or cancel_delivered_at is not null
         or finished_at < clock_timestamp() - ${startOverS} * interval '1 second')
       and not exists (select from run c where c.parent_run_id = r.run_id) and not ${hasOpenCall}
     order by run_id limit :limit`,
    { projectId, limit },
  );
  return rows;
}

/** A claim names its run's row, so none comes between the lock and the look. One that came before keeps its run. */
export async function eraseRuns(
  trx: Db,
  project: ErasedProject,
  runIds: readonly string[],
): Promise<RowCounts> {
  await trx.raw('select 1 from run where run_id = any (?) order by run_id for update', [[...runIds]]);
  const { rows } = await trx.raw<{ rows: { run_id: string; digest: string }[] }>(
    `select run_id, digest from run r where run_id = any (?) and project_id = ? and not ${hasOpenCall}`,
    [[...runIds], project.project_id],
  );
  const going = rows.map(({ run_id }) => run_id);
  const attempts: string[] = await trx('attempt').whereIn('run_id', going).pluck('attempt_id');
  const attempt = await eraseAttempts(trx, project, attempts);
  const counts = await deleteRuns(trx, going);
  const definition = await deleteUnnamed(
    trx,
    rows.map(({ digest }) => digest),
  );
  return { ...counts, attempt, definition };
}
