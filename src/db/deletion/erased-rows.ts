/**
 * Deletes the rows of a project that is being erased, in batches; all of them belong to that project alone. Its calls
 * are deleted by `erase_attempts` (sql/deletion.sql). Its schedules start nothing more, and are not delivered to
 * Temporal again. Definitions are stored once per text, for all projects: one is deleted with the last run or version
 * that refers to it.
 */
import type { Db } from '../connect.ts';
import { leastId } from '../partitions.ts';
import { tryScheduleTurn } from '../schedule.ts';
import { query } from '../statements.ts';
import { deleteUnnamed, type RowCounts } from './deleted-tables.ts';
import { deleteRuns } from './old-runs.ts';

interface ErasedSchedule {
  readonly schedule_id: string;
  readonly workflow_id: string;
}

/** Marks the deletion as delivered: the schedules are removed from Temporal before their rows are deleted. */
async function endSchedules(db: Db, projectId: string): Promise<void> {
  await db.raw(
    `update schedule set deleted_at = clock_timestamp(), delivered_version = version
     where project_id = ? and deleted_at is null`,
    [projectId],
  );
}

export async function listEndedSchedules(db: Db, projectId: string): Promise<readonly ErasedSchedule[]> {
  return db('schedule').where({ project_id: projectId }).select('schedule_id', 'workflow_id');
}

/**
 * Does nothing while another process delivers the schedule to Temporal.
 * @param forget returns whether Temporal no longer has any of it
 * @returns whether the row was deleted
 */
export function eraseSchedule(
  db: Db,
  schedule: ErasedSchedule,
  forget: (schedule: ErasedSchedule) => Promise<boolean>,
): Promise<boolean> {
  const { schedule_id } = schedule;
  return db.transaction(async (trx) => {
    if (!(await tryScheduleTurn(trx, schedule_id)) || !(await forget(schedule))) return false;
    await trx('schedule').where({ schedule_id }).delete();
    return true;
  });
}

/** Stops new calls, starts, webhooks, events and standalone ladders; runs are ended separately. */
export async function stopWork(db: Db, projectId: string): Promise<void> {
  const names = { projectId };
  await db.raw(
    `update instance set state = 'deregistered', reason = 'its project is erased',
       down_since = coalesce(down_since, now()) where owner_project = :projectId and state <> 'deregistered'`,
    names,
  );
  await endSchedules(db, projectId);
  for (const table of ['webhook', 'hook', 'outside_event'])
    await db.raw(`delete from ${table} where project_id = :projectId`, names);
  await db.raw(
    `update escalation set state = 'cancelled', finished_at = clock_timestamp()
     where project_id = :projectId and run_id is null and state in ('running', 'in_review')`,
    names,
  );
}

/** An instance may still be executing a call of another project. */
export async function hasInstances(db: Db, projectId: string): Promise<boolean> {
  return (await db('instance').where({ owner_project: projectId }).first('instance_id')) !== undefined;
}

/** @param ms a direct upload announced within this time may still arrive */
export async function listErasableJobs(
  db: Db,
  projectId: string,
  { ms, limit }: { readonly ms: number; readonly limit: number },
): Promise<readonly string[]> {
  const rows = await query<{ job_id: string }>(db).all(
    `select job_id from job j where project_id = :projectId and (:ms = 0 or not exists (
       select from media_object o where o.job_id = j.job_id and o.state = 'announced' and o.upload_id is null
         and o.created_at > now() - :ms * interval '1 millisecond')) limit :limit`,
    { projectId, ms, limit },
  );
  return rows.map(({ job_id }) => job_id);
}

export type ErasedBook = 'ledger_entry' | 'audit';

/** Calls `erase_project` (sql/deletion.sql). @returns null if there are no more rows */
export async function eraseBook(
  db: Db,
  book: ErasedBook,
  page: ErasedProject & { readonly keys: readonly string[]; readonly after: string; readonly most: number },
): Promise<string | null> {
  const { project_id, pseudonym, keys, after, most } = page;
  const row = await query<{ place: string | null }>(db).one(
    'select erase_project(?, ?, ?, ?, ?, ?) as place',
    [book, project_id, pseudonym, [...keys], after, most],
  );
  return row.place;
}

/** Deletes rows that refer to the project only by name. A spec that an open run of another project uses stays. */
export async function eraseNames(trx: Db, projectId: string): Promise<RowCounts> {
  const names = { projectId };
  const remove = (statement: string): Promise<number> => query(trx).written(statement, names);
  await remove(`delete from budget where scope = 'project:' || :projectId
    or scope >= 'budget:' || :projectId || ':' and scope < 'budget:' || :projectId || ';'
    or scope >= 'capability:' || :projectId || ':' and scope < 'capability:' || :projectId || ';'`);
  const capability_spec = await remove(
    `delete from capability_spec s using publisher p where p.name = s.name and p.projects = array[:projectId::text]
       and not exists (select from run r where r.finished_at is null and jsonb_exists(r.specs, s.name))`,
  );
  await remove('delete from publisher where projects = array[:projectId::text]');
  await remove(`update publisher set projects = array_remove(projects, :projectId::text)
    where :projectId::text = any (projects)`);
  return { capability_spec };
}

interface ErasedProject {
  readonly project_id: string;
  readonly pseudonym: string;
}

/** @returns how many were deleted; the remaining ones have no project any more */
export async function eraseAttempts(
  trx: Db,
  { project_id, pseudonym }: ErasedProject,
  attemptIds: readonly string[],
): Promise<number> {
  const row = await query<{ deleted: number }>(trx).one('select erase_attempts(?, ?, ?) as deleted', [
    ...[project_id, pseudonym, [...attemptIds]],
  ]);
  return row.deleted;
}

interface AttemptPage {
  readonly own: readonly string[];
  /** The last attempt that was examined; null: there are no more. */
  readonly place: string | null;
  /** An attempt is open, or ended so recently that another may follow: it is examined again. */
  readonly is_blocked: boolean;
}

/** No order of attempts is by project, so each attempt is examined once. */
export function pageAttempts(
  db: Db,
  {
    project_id,
    after,
    limit,
    quietMs,
  }: { project_id: string; after: string; limit: number; quietMs: number },
): Promise<AttemptPage> {
  return query<AttemptPage>(db).one(
    `with page as materialized (
       select attempt_id, project_id = :project_id as is_own, project_id = :project_id and (
         finished_at is null or finished_at > clock_timestamp() - :quietMs * interval '1 millisecond') as is_going
       from attempt where attempt_id > :after order by attempt_id limit :limit
     ), stop as (select min(attempt_id) as at from page where is_going)
     select array(select attempt_id from page, stop where is_own and (at is null or attempt_id < at)) as own,
       (select max(attempt_id) from page, stop where at is null or attempt_id < at) as place,
       (select at is not null from stop) as is_blocked`,
    { project_id, after, limit, quietMs },
  );
}

/** The clocks of servers, which assign the ids, may differ. */
const skewMs = 600_000;

/**
 * Finds calls that were written after their position had been examined. Processes that had not seen the erasure made
 * them, all after its request.
 * @returns the position before them; null: there are none
 */
export async function findLatePlace(
  db: Db,
  { project_id, requested_at }: { readonly project_id: string; readonly requested_at: Date },
): Promise<string | null> {
  const place = leastId('att', new Date(requested_at.getTime() - skewMs));
  const rows = await query(db).all('select 1 from attempt where attempt_id > ? and project_id = ? limit 1', [
    place,
    project_id,
  ]);
  return rows.length > 0 ? place : null;
}

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
  /** The schedule's start that made the run. */
  readonly schedule_start: string | null;
}

/** After this time, no start is in flight for a run that ended before its start was marked. */
const startOverS = 60;

const hasOpenCall = `exists (select from attempt a
  where a.run_id = r.run_id and a.state in ('reserved', 'dispatched'))`;

/** Ended runs without child runs and open calls. */
export function listErasableRuns(db: Db, projectId: string, limit: number): Promise<readonly ErasedRun[]> {
  return query<ErasedRun>(db).all(
    `select run_id, pipeline, case when schedule_id is not null then parent_workflow_id end as schedule_start
     from run r where project_id = :projectId and finished_at is not null
       and (start_delivered_at is not null or cancel_delivered_at is not null
         or finished_at < clock_timestamp() - ${startOverS} * interval '1 second')
       and not exists (select from run c where c.parent_run_id = r.run_id) and not ${hasOpenCall}
     order by run_id limit :limit`,
    { projectId, limit },
  );
}

/**
 * A claim refers to the row of its run, so none is made between the lock and the check. An earlier claim keeps its run.
 */
export async function eraseRuns(
  trx: Db,
  project: ErasedProject,
  runIds: readonly string[],
): Promise<RowCounts> {
  await trx.raw('select 1 from run where run_id = any (?) order by run_id for update', [[...runIds]]);
  const rows = await query<{ run_id: string; digest: string }>(trx).all(
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
