/**
 * Requests of people for a run: pause, resume, cancel, a new ceiling. Each is compare-and-set on the row, with a line
 * in the run's log; afterwards Temporal is notified, which maintenance retries. `control_version` increases with each
 * of them but a cancel.
 */
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { RunState } from '@capstan/core/contracts/run';
import type { CancelRequest } from '@capstan/core/contracts/run-control';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';

export interface RunKey {
  readonly project_id: string;
  readonly run_id: string;
}

/** Begins nothing new. @param by id of the key or person @returns false if it is neither queued nor running */
export function pauseRun(db: Db, key: RunKey, by: string | null = null): Promise<boolean> {
  return query(db).some(
    `with changed as (
       update run set state = 'paused', control_version = control_version + 1, paused_at = clock_timestamp()
       where run_id = :run_id and project_id = :project_id and state in ('queued', 'running') returning run_id
     ), logged as (
       insert into event (run_id, type, data)
         select run_id, 'run.paused', jsonb_strip_nulls(jsonb_build_object('by', :by::text)) from changed
     )
     select 1 from changed`,
    { ...key, by },
  );
}

/**
 * Restores the earlier state, or `running` if the run began during the pause. Steps that wait for an instance wait
 * longer by the time of the pause. @returns false if it is not paused
 */
export function resumeRun(db: Db, key: RunKey): Promise<boolean> {
  return query(db).some(
    `with held as materialized (
       select run_id, paused_at, clock_timestamp() as now from run
       where run_id = :run_id and project_id = :project_id and state = 'paused' for update
     ), changed as (
       update run r set state = case when started_at is null then 'queued' else 'running' end,
         control_version = control_version + 1, paused_at = null, paused_ms = ${pausedMs('h.now')}
       from held h where r.run_id = h.run_id returning r.run_id
     ), extended as (
       update step s set wait_until = wait_until + (h.now - greatest(h.paused_at, s.wait_since))
       from held h where s.run_id = h.run_id and s.state = 'waiting' and s.awaiting in ('capability', 'slot')
         and s.wait_until is not null
     ), logged as (
       insert into event (run_id, type) select run_id, 'run.resumed' from changed
     )
     select 1 from changed`,
    { ...key },
  );
}

function pausedMs(now: string): string {
  return `(r.paused_ms + coalesce(extract(epoch from ${now} - r.paused_at) * 1000, 0))::bigint`;
}

export interface PauseOfRun {
  readonly is_paused: boolean;
  /** How long the run was paused so far, in all its pauses. */
  readonly paused_ms: number;
}

export async function readPause(db: Db, runId: string): Promise<PauseOfRun> {
  const row = await query<PauseOfRun>(db, 'read_pause').first(
    `select r.state = 'paused' as is_paused, ${pausedMs('clock_timestamp()')}::float8 as paused_ms
     from run r where r.run_id = ?`,
    [runId],
  );
  return row ?? { is_paused: false, paused_ms: 0 };
}

export interface OpenCallRow {
  readonly step_id: string;
  /** 0 = the step as a whole. */
  readonly item: number;
  readonly capability: string;
  readonly endpoint: string;
  readonly started_at: Date;
  /** The number of all open calls of the run. */
  readonly open: number;
}

/** Lists open calls of a run's steps and of their ladders, oldest first. */
export function listOpenCalls(db: Db, runId: string, limit: number): Promise<readonly OpenCallRow[]> {
  return query<OpenCallRow>(db).all(
    `select coalesce(a.step_id, e.step_id) as step_id, coalesce(a.item, e.item, 0) as item, a.capability, a.endpoint,
       a.started_at, count(*) over ()::int as open
     from attempt a
     left join escalation e on a.step_id is null and e.escalation_id = split_part(a.key, '.', 1)
     where a.run_id = ? and a.state in ('reserved', 'dispatched') and coalesce(a.step_id, e.step_id) is not null
     order by a.started_at, a.attempt_id limit ?`,
    [runId, limit],
  );
}

/** Lists child runs that continue, oldest first. */
export async function listOpenChildRuns(db: Db, runId: string, limit: number): Promise<readonly string[]> {
  const rows = await query<{ run_id: string }>(db).all(
    `select run_id from run where parent_run_id = ? and finished_at is null and state <> 'paused'
     order by run_id limit ?`,
    [runId, limit],
  );
  return rows.map(({ run_id }) => run_id);
}

interface CancelOrder {
  readonly reason: string | null;
  readonly mode: CancelRequest['mode'];
  /** Id of the key or the person; absent: Capstan itself. */
  readonly by?: string;
}

/**
 * Requests a cancel. After a graceful request, a second one may terminate the run.
 * @returns false if nothing changed: it was requested before, the run has ended, or there is none
 */
export function requestCancel(
  db: Db,
  { run_id, project_id }: RunKey,
  { reason, mode, by }: CancelOrder,
): Promise<boolean> {
  return query(db).some(
    `with asked as (
       update run set state = 'cancelling', cancel_requested_at = clock_timestamp(), cancel_delivered_at = null,
         cancel_reason = coalesce(:reason, cancel_reason), cancel_mode = :mode
       where run_id = :run_id and project_id = :project_id and (state in ('queued', 'running', 'paused')
         or state = 'cancelling' and :mode = 'terminate' and cancel_mode is distinct from 'terminate')
       returning run_id
     ), logged as (
       insert into event (run_id, type, data)
       select run_id, 'run.cancelling', jsonb_build_object('reason', :reason::text, 'mode', :mode::text)
         || jsonb_strip_nulls(jsonb_build_object('by', :by::text)) from asked
     )
     select 1 from asked`,
    { run_id, project_id, reason, mode, by: by ?? null },
  );
}

/** Cancels the child runs of an ended run; mode `terminate` also replaces graceful cancels. @returns how many */
export async function requestCancelOfChildren(
  db: Db,
  parentRunId: string,
  { reason, mode }: CancelOrder,
): Promise<number> {
  const row = await query<{ count: number }>(db).first(
    'select stop_children(:parentRunId, :mode, :reason) as count',
    { parentRunId, reason, mode },
  );
  return row?.count ?? 0;
}

interface LockedRun extends RunKey {
  readonly state: RunState;
  readonly start_delivered_at: Date | null;
  readonly cancel_mode: CancelRequest['mode'] | null;
  readonly concurrency_key: string | null;
  readonly admitted_at: Date | null;
  readonly definition: PipelineDefinition;
}

/** Locks the run until the transaction ends. */
export function lockRun(trx: Db, { project_id, run_id }: RunKey): Promise<LockedRun | undefined> {
  return query<LockedRun>(trx).first(
    `select r.run_id, r.project_id, r.state, r.start_delivered_at, r.cancel_mode, r.concurrency_key, r.admitted_at,
       d.body as definition
     from run r join definition d using (digest) where r.run_id = ? and r.project_id = ? for update of r`,
    [run_id, project_id],
  );
}

interface NewCeiling {
  /** Null = no ceiling. */
  readonly ceilingUsd: number | null;
  /** Only above the ceiling that the run has when this takes effect. */
  readonly isRaise: boolean;
}

interface SetCeiling {
  readonly is_set: boolean;
  /** numeric as text; null: it has none */
  readonly was: string | null;
}

/**
 * Sets a new ceiling for later reservations; existing ones stay. `setRunLimit` adjusts the budget and its marks. The
 * ceiling also applies to the runs below, which are notified.
 * @returns undefined if the run is not queued, running or paused
 */
export function setRunCeiling(trx: Db, key: RunKey, ceiling: NewCeiling): Promise<SetCeiling | undefined> {
  return query<SetCeiling>(trx).first(
    `with recursive before as (
       select run_id, budget_ceiling_usd from run where run_id = :run_id and project_id = :project_id
         and state in ('queued', 'running', 'paused') for no key update
     ), changed as (
       update run r set budget_ceiling_usd = cast(:ceilingUsd as numeric), control_version = control_version + 1,
         budget_version = control_version + 1
       from before where r.run_id = before.run_id and (not cast(:isRaise as boolean)
         or before.budget_ceiling_usd < coalesce(cast(:ceilingUsd as numeric), 'infinity'))
       returning r.run_id, before.budget_ceiling_usd as was
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
     select exists (select from changed) as is_set, budget_ceiling_usd as was from before`,
    { ...key, ...ceiling },
  );
}
