/**
 * What people ask of a run: pause, resume, cancel, another ceiling. Each is compare-and-set on the row, with a line in
 * the run's log; Temporal is told afterwards, which maintenance repeats. `control_version` grows with each of them but
 * a cancel.
 */
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import type { CancelRequest, RunState } from '../../contracts/run.ts';
import type { Db } from '../connect.ts';

export interface RunKey {
  readonly project_id: string;
  readonly run_id: string;
}

/** Nothing new of it starts. @returns false when it is neither queued nor running */
export async function pauseRun(db: Db, key: RunKey): Promise<boolean> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `with changed as (
       update run set state = 'paused', control_version = control_version + 1
       where run_id = :run_id and project_id = :project_id and state in ('queued', 'running') returning run_id
     ), logged as (
       insert into event (run_id, type) select run_id, 'run.paused' from changed
     )
     select 1 from changed`,
    { ...key },
  );
  return rows.length > 0;
}

/** As it was before, or as it has begun while the pause was on its way. @returns false when it is not paused */
export async function resumeRun(db: Db, key: RunKey): Promise<boolean> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `with changed as (
       update run set state = case when started_at is null then 'queued' else 'running' end,
         control_version = control_version + 1
       where run_id = :run_id and project_id = :project_id and state = 'paused' returning run_id
     ), logged as (
       insert into event (run_id, type) select run_id, 'run.resumed' from changed
     )
     select 1 from changed`,
    { ...key },
  );
  return rows.length > 0;
}

export interface CancelOrder {
  readonly reason: string | null;
  readonly mode: CancelRequest['mode'];
}

/**
 * Asks for a cancel; one that was asked for gracefully may be asked for again, to terminate.
 * @returns false when nothing has changed: it is asked for already, the run has ended, or there is none
 */
export async function requestCancel(
  db: Db,
  { run_id, project_id }: RunKey,
  { reason, mode }: CancelOrder,
): Promise<boolean> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `with asked as (
       update run set state = 'cancelling', cancel_requested_at = clock_timestamp(), cancel_delivered_at = null,
         cancel_reason = coalesce(:reason, cancel_reason), cancel_mode = :mode
       where run_id = :run_id and project_id = :project_id and (state in ('queued', 'running', 'paused')
         or state = 'cancelling' and :mode = 'terminate' and cancel_mode is distinct from 'terminate')
       returning run_id
     ), logged as (
       insert into event (run_id, type, data)
       select run_id, 'run.cancelling', jsonb_build_object('reason', :reason::text, 'mode', :mode::text) from asked
     )
     select 1 from asked`,
    { run_id, project_id, reason, mode },
  );
  return rows.length > 0;
}

/** Cancels the runs that steps of an ended run have started; graceful cancels too become terminations. @returns how many were asked now */
export async function requestCancelOfChildren(
  db: Db,
  parentRunId: string,
  { reason, mode }: CancelOrder,
): Promise<number> {
  const { rows } = await db.raw<{ rows: { count: number }[] }>(
    'select stop_children(:parentRunId, :mode, :reason) as count',
    { parentRunId, reason, mode },
  );
  return rows[0]?.count ?? 0;
}

export interface LockedRun extends RunKey {
  readonly state: RunState;
  readonly start_delivered_at: Date | null;
  readonly cancel_mode: CancelRequest['mode'] | null;
  readonly concurrency_key: string | null;
  readonly admitted_at: Date | null;
  readonly definition: PipelineDefinition;
}

/** Until the transaction ends, nobody else moves it. */
export async function lockRun(trx: Db, { project_id, run_id }: RunKey): Promise<LockedRun | undefined> {
  const { rows } = await trx.raw<{ rows: LockedRun[] }>(
    `select r.run_id, r.project_id, r.state, r.start_delivered_at, r.cancel_mode, r.concurrency_key, r.admitted_at,
       d.body as definition
     from run r join definition d using (digest) where r.run_id = ? and r.project_id = ? for update of r`,
    [run_id, project_id],
  );
  return rows[0];
}

/**
 * Another ceiling, from the next reservation on; what is reserved stays so. Marks of the budget are those of the new
 * limit. It holds for the runs below too, which are told.
 * @param ceilingUsd null = none
 * @returns false when the run is not queued, running or paused
 */
export async function setRunCeiling(trx: Db, key: RunKey, ceilingUsd: number | null): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: unknown[] }>(
    `with recursive before as (
       select run_id, budget_ceiling_usd from run where run_id = :run_id and project_id = :project_id
         and state in ('queued', 'running', 'paused') for no key update
     ), changed as (
       update run r set budget_ceiling_usd = cast(:ceilingUsd as numeric), control_version = control_version + 1,
         budget_version = control_version + 1
       from before where r.run_id = before.run_id returning r.run_id, before.budget_ceiling_usd as was
     ), below as (
       select r.run_id from changed c join run r on r.parent_run_id = c.run_id
       union all
       select r.run_id from below b join run r on r.parent_run_id = b.run_id
     ), held as (
       select run_id from run where run_id in (select run_id from below) and state in ('queued', 'running', 'paused')
       order by run_id for no key update
     ), told as (
       update run r set control_version = control_version + 1, budget_version = control_version + 1
       from held where r.run_id = held.run_id
     ), logged as (
       insert into event (run_id, type, data) select run_id, 'run.budget_raised',
         jsonb_build_object('from', was::float8, 'to', cast(:ceilingUsd as numeric)::float8) from changed
     )
     select 1 from changed`,
    { ...key, ceilingUsd },
  );
  return rows.length > 0;
}
