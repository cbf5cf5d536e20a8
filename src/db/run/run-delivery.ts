/**
 * Starts, cancels and controls that Temporal has not accepted yet. The row is the truth; delivery is retried. A run
 * that waits for its turn is not started. Also the open runs that Temporal has accepted.
 */
import type { DecidedRoute } from '@capstan/core/contracts/decision';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Priority } from '@capstan/core/contracts/primitives';
import type { RunState } from '@capstan/core/contracts/run';
import type { CancelRequest, ParentUnit } from '@capstan/core/contracts/run-control';
import { type Db, relaxed } from '../connect.ts';
import { type DeliveredPage, query, runPrepared } from '../statements.ts';

const hasTurn = '(concurrency_key is null or admitted_at is not null)';
const isUnstarted = `start_delivered_at is null and finished_at is null and ${hasTurn}`;

async function listIds(db: Db, statement: string, bindings: readonly number[]): Promise<string[]> {
  const rows = await query<{ run_id: string }>(db).all(statement, [...bindings]);
  return rows.map(({ run_id }) => run_id);
}

export function listUndeliveredStarts(db: Db, olderThanMs: number, limit: number): Promise<string[]> {
  return listIds(
    db,
    `select run_id from run where ${isUnstarted}
       and created_at < clock_timestamp() - ? * interval '1 millisecond' order by created_at limit ?`,
    [olderThanMs, limit],
  );
}

/** Runs that no request started: the writer of the row cannot deliver them. */
const startedByOthers = `${isUnstarted} and parent_workflow_id is not null`;

export function listStartedByOthers(db: Db, limit: number): Promise<string[]> {
  return listIds(db, `select run_id from run where ${startedByOthers} order by created_at limit ?`, [limit]);
}

export interface StartedRow {
  readonly is_cancelled: boolean;
  /** A cancel has closed it meanwhile, without waiting for its workflow. */
  readonly is_terminated: boolean;
  /** A pause, a resume or a new ceiling came meanwhile. */
  readonly is_changed: boolean;
}

export interface StartMark {
  readonly run_id: string;
  /** The control version that was delivered with the start. */
  readonly version: number;
}

/** Closed by a cancel that did not wait for the workflow. */
const isTerminated = `finished_at is not null and cancel_mode is not distinct from 'terminate'`;

/**
 * A mark that a crash undoes is made again: the repeated start finds the first one. A run that was terminated meanwhile
 * stays unmarked until its workflow has ended, so that maintenance ends the workflow if this process cannot.
 * @param payloadKey the id of the key by which the starts are encrypted; '' = by none
 * @returns the runs that exist
 */
export async function markStartsDelivered(
  db: Db,
  marks: readonly StartMark[],
  payloadKey: string,
): Promise<readonly (StartedRow & Pick<StartMark, 'run_id'>)[]> {
  const { rows } = await runPrepared<StartedRow & Pick<StartMark, 'run_id'>>(db, {
    name: 'mark_starts_delivered',
    text: `with marked as (
         select run_id, m.version from unnest($1::text[], $2::int[]) m (run_id, version)
         join run using (run_id) order by run_id for update of run
       )
       update run r set control_delivered = greatest(control_delivered, m.version), payload_key = $3,
         start_delivered_at = case when ${isTerminated} then start_delivered_at else now() end
       from marked m where r.run_id = m.run_id and ${relaxed}
       returning r.run_id, cancel_requested_at is not null as is_cancelled,
         control_version > control_delivered as is_changed,
         ${isTerminated} as is_terminated`,
    values: [marks.map(({ run_id }) => run_id), marks.map(({ version }) => version), payloadKey],
  });
  return rows;
}

/** Runs whose start was delivered, or never will be; other runs are started first. */
const cancelUndelivered = `cancel_requested_at is not null and cancel_delivered_at is null
  and finished_at is null and (start_delivered_at is not null or cancel_mode = 'terminate' or not ${hasTurn})`;

export function listUndeliveredCancels(db: Db, limit: number): Promise<string[]> {
  return listIds(
    db,
    `select run_id from run where ${cancelUndelivered} order by cancel_requested_at limit ?`,
    [limit],
  );
}

/** @param mode that was delivered; a graceful cancel may have been replaced meanwhile */
export async function markCancelDelivered(db: Db, runId: string, mode: CancelRequest['mode']): Promise<void> {
  await db.raw(
    `update run set cancel_delivered_at = now() where run_id = ? and coalesce(cancel_mode, 'graceful') = ?`,
    [runId, mode],
  );
}

/**
 * Runs terminated before their start was marked, long enough ago that no start is in flight. A run that a server
 * started before it died is still open in Temporal.
 */
export function listEndedUnstarted(
  db: Db,
  olderThanMs: number,
  limit: number,
): Promise<readonly { readonly run_id: string; readonly pipeline: string }[]> {
  return query<{ run_id: string; pipeline: string }>(db).all(
    `select run_id, pipeline from run
     where finished_at < clock_timestamp() - ? * interval '1 millisecond' and start_delivered_at is null
       and cancel_mode = 'terminate' and cancel_delivered_at is null order by finished_at limit ?`,
    [olderThanMs, limit],
  );
}

/** Runs whose start was delivered: the start of another run delivers its controls too. */
const controlUndelivered = `control_version > control_delivered and finished_at is null
  and start_delivered_at is not null`;

export function listUndeliveredControls(db: Db, limit: number): Promise<string[]> {
  return listIds(db, `select run_id from run where ${controlUndelivered} order by run_id limit ?`, [limit]);
}

export async function markControlDelivered(db: Db, runId: string, version: number): Promise<void> {
  await db.raw('update run set control_delivered = greatest(control_delivered, ?) where run_id = ?', [
    version,
    runId,
  ]);
}

const untoldParents = `parent_workflow_id is not null and parent_told_at is null and finished_at is not null`;

export interface UntoldRow {
  readonly run_id: string;
  readonly parent_workflow_id: string;
  readonly parent_step_id: string | null;
  readonly parent_item: number | null;
}

/** Ended runs whose parent workflow has not been notified. */
export function listUntoldParents(db: Db, limit: number): Promise<readonly UntoldRow[]> {
  return query<UntoldRow>(db).all(
    `select run_id, parent_workflow_id, parent_step_id, parent_item from run where ${untoldParents}
     order by finished_at limit ?`,
    [limit],
  );
}

export async function markParentTold(db: Db, runId: string): Promise<void> {
  await db('run').where({ run_id: runId }).update({ parent_told_at: db.fn.now() });
}

/** The columns that a delivery needs. */
export interface DeliveryRow {
  readonly run_id: string;
  readonly project_id: string;
  readonly pipeline: string;
  readonly version: string;
  readonly priority: Priority;
  readonly state: RunState;
  readonly definition: PipelineDefinition;
  readonly start_delivered_at: Date | null;
  readonly cancel_requested_at: Date | null;
  readonly cancel_mode: CancelRequest['mode'] | null;
  readonly finished_at: Date | null;
  readonly control_version: number;
  readonly control_delivered: number;
  readonly budget_version: number;
  /** How long it was paused, without a pause that lasts. */
  readonly paused_ms: number;
  /** Earlier runs with its concurrency key come first. */
  readonly waits_its_turn: boolean;
  /** Ids of steps whose results were copied from the run that it repeats. */
  readonly reused: readonly string[];
  /** Ids of steps that are skipped already. */
  readonly skipped: readonly string[];
  /** Dispatch of the steps that leave it open, as decided when the run was accepted. */
  readonly dispatch: readonly DecidedRoute[];
  /** The unit that started it, if a `for_each` is above it. */
  readonly parent: ParentUnit | null;
}

/** Of a rerun; it begins with the ends that it took over. */
function stepsInState(state: 'reused' | 'skipped'): string {
  return `case when r.rerun_of is null then '{}' else array(
    select s.step_id from step s where s.run_id = r.run_id and s.item = 0 and s.state = '${state}') end`;
}

export async function readDelivery(db: Db, runId: string): Promise<DeliveryRow | undefined> {
  const { rows } = await db
    .raw<{ rows: DeliveryRow[] }>(
      `select r.run_id, r.project_id, r.pipeline, r.version, r.priority, r.state, r.dispatch, r.start_delivered_at,
         r.cancel_requested_at, r.cancel_mode, r.finished_at, r.control_version,
         r.control_delivered, r.budget_version, r.paused_ms::float8 as paused_ms,
         not ${hasTurn} as waits_its_turn, d.body as definition,
         case when r.is_below_items then json_build_object('workflow_id', r.parent_workflow_id,
           'step_id', r.parent_step_id, 'item', r.parent_item) end as parent,
         ${stepsInState('reused')} as reused, ${stepsInState('skipped')} as skipped
       from run r join definition d using (digest) where r.run_id = ?`,
      [runId],
    )
    .options({ name: 'read_delivery' });
  return rows[0];
}

/** Kinds of pending work that runs wait for. */
export interface DueWork {
  readonly has_lines: boolean;
  readonly has_wakes: boolean;
  readonly has_parents: boolean;
  readonly has_starts: boolean;
  readonly has_turns: boolean;
  readonly has_controls: boolean;
  readonly has_cancels: boolean;
}

/** Cheap: each column probes a partial index that is empty in steady state. */
export async function readDueWork(db: Db): Promise<DueWork> {
  const { rows } = await db
    .raw<{ rows: [DueWork] }>(
      `select exists (select 1 from queued_call) as has_lines,
         exists (select 1 from step where wake_requested_at is not null) as has_wakes,
         exists (select 1 from run where ${untoldParents}) as has_parents,
         exists (select 1 from run where ${startedByOthers}) as has_starts,
         exists (select 1 from run where concurrency_key is not null and finished_at is null
           and admitted_at is null) as has_turns,
         exists (select 1 from run where ${controlUndelivered}) as has_controls,
         exists (select 1 from run where ${cancelUndelivered}) as has_cancels`,
    )
    .options({ name: 'read_due_work' });
  return rows[0];
}

/** Delivery time of the oldest open run; null = there is none. */
export async function readOldestOpen(db: Db): Promise<Date | null> {
  const row = await query<{ oldest: Date | null }>(db).one(`select min(start_delivered_at) as oldest from run
     where start_delivered_at is not null and finished_at is null`);
  return row.oldest;
}

export interface OpenRunRow {
  readonly run_id: string;
  readonly project_id: string;
  readonly pipeline: string;
  readonly definition: PipelineDefinition;
  readonly cancel_requested_at: Date | null;
  readonly cancel_mode: CancelRequest['mode'] | null;
}

/** Selects the open ones. */
export async function listOpenAmong(db: Db, runIds: readonly string[]): Promise<readonly OpenRunRow[]> {
  if (runIds.length === 0) return [];
  return query<OpenRunRow>(db).all(
    `select r.run_id, r.project_id, r.pipeline, d.body as definition, r.cancel_requested_at, r.cancel_mode
     from run r join definition d using (digest)
     where r.run_id = any (?) and r.start_delivered_at is not null and r.finished_at is null`,
    [[...runIds]],
  );
}

/** @returns null if there is no such run */
export async function readRunRef(
  db: Db,
  runId: string,
): Promise<Pick<OpenRunRow, 'run_id' | 'pipeline'> | null> {
  const row = await query<Pick<OpenRunRow, 'run_id' | 'pipeline'>>(db).first(
    'select run_id, pipeline from run where run_id = ?',
    [runId],
  );
  return row ?? null;
}

/** Lists open runs that Temporal accepted at least `olderThanMs` ago, by id, after `after`. */
export function listDelivered(
  db: Db,
  { after, olderThanMs, limit }: DeliveredPage,
): Promise<readonly Pick<OpenRunRow, 'run_id' | 'pipeline'>[]> {
  return query<Pick<OpenRunRow, 'run_id' | 'pipeline'>>(db).all(
    `select run_id, pipeline from run
     where start_delivered_at < clock_timestamp() - ? * interval '1 millisecond' and finished_at is null
       and run_id > ? order by run_id limit ?`,
    [olderThanMs, after, limit],
  );
}

/** Marks its start for redelivery, with all later requests. @returns false if it has ended; nothing was written */
export function forgetStart(db: Db, runId: string): Promise<boolean> {
  return query(db).wrote(
    `update run set start_delivered_at = null, cancel_delivered_at = null, control_delivered = 0, payload_key = ''
     where run_id = ? and finished_at is null`,
    [runId],
  );
}
