/**
 * Queries that change the state of a run, and that find a run by its origin. Requests of people are in run-control.ts.
 */
import type { OnBudget } from '@capstan/core/contracts/decision';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Failure, Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { RunState } from '@capstan/core/contracts/run';
import type { StepKey } from '../attempt/attempt.ts';
import { type Db, relaxed } from '../connect.ts';
import { query, runPrepared, toJson, toJsonb } from '../statements.ts';
import { openSteps, waitOver } from '../step/step.ts';
import { type NewRun, newRunColumns } from './run-columns.ts';

/** A job that is written with its first run. */
interface NewJob {
  readonly job_id: string;
  readonly project_id: string;
  readonly body: JsonObject;
}

interface NewRuns {
  /** All of one project and one requester. */
  readonly runs: readonly NewRun[];
  /** The new ones among their jobs. */
  readonly jobs?: readonly NewJob[];
  /** Maximum of open runs of the project; null = no limit. The last runs are left out. */
  readonly mostOpen?: number | null;
}

export interface InsertedRuns {
  /** Existing runs are left out too: a step, or a schedule at one time, starts one run. */
  readonly run_ids: ReadonlySet<string>;
  /** Runs of the project that were open before, counted up to `mostOpen`. */
  readonly open: number;
}

const insertAll = `with open as materialized (
   select count(*)::int as count from (
     select 1 from run where $5::int is not null and project_id = $6 and finished_at is null limit $5) one
 ), asked as materialized (
   select * from jsonb_populate_recordset(null::run, $1::jsonb) limit (select $5 - count from open)
 ), new_job as (
   insert into job (job_id, project_id, body)
   select j.job_id, j.project_id, j.body::json
   from unnest($2::text[], $3::text[], $4::text[]) j (job_id, project_id, body)
   where j.job_id in (select job_id from asked)
 ), taken as (
   insert into run (${newRunColumns.join(', ')}, is_below_items, ancestors, admitted_at)
   select ${newRunColumns.map((column) => `r.${column}`).join(', ')},
     coalesce(r.is_below_items, false) or coalesce(parent.is_below_items, false), parent.line, r.admitted_at
   from asked r
   left join lateral (select p.ancestors || p.run_id as line, p.is_below_items from run p
     where p.run_id = r.parent_run_id and p.finished_at is null for share) parent on true
   where parent_run_id is null or parent.line is not null
   on conflict do nothing returning run_id, pipeline, version, job_id
 ), logged as (
   insert into event (run_id, type, data) select run_id, 'run.queued',
     jsonb_build_object('pipeline', pipeline, 'version', version, 'job_id', job_id)
       || jsonb_strip_nulls(jsonb_build_object('by', $7::text)) from taken
 )
 select array(select run_id from taken) as run_ids, (select count from open) as open`;

/**
 * An ended run starts none: the parent's row is locked, so that the statement that closes it later sees its child runs.
 * The inserting statement counts open runs, in an index that holds nothing else; two concurrent statements do not see
 * each other's runs. A writer of many runs locks first.
 */
export async function insertRuns(
  db: Db,
  { runs, jobs = [], mostOpen = null }: NewRuns,
): Promise<InsertedRuns> {
  const rows = runs.map(({ is_admitted, started_by: _by, ...run }) => ({
    ...run,
    specs: run.specs ?? {},
    dispatch: run.dispatch ?? [],
    depth: run.depth ?? 0,
    admitted_at: is_admitted ? 'now' : null, // by the database's clock
  }));
  const inserted = await runPrepared<{ run_ids: string[]; open: number }>(db, {
    name: 'insert_runs',
    text: insertAll,
    values: [
      toJsonb(rows),
      jobs.map(({ job_id }) => job_id),
      jobs.map(({ project_id }) => project_id),
      jobs.map(({ body }) => toJson(body)),
      mostOpen,
      runs[0]?.project_id ?? '',
      runs[0]?.started_by ?? null,
    ],
  });
  const [written] = inserted.rows;
  return { run_ids: new Set(written?.run_ids), open: written?.open ?? 0 };
}

/** The facts about a run that a worker needs; only the ceiling changes. */
export interface RunContextRow
  extends Pick<NewRun, 'run_id' | 'project_id' | 'job_id' | 'pipeline' | 'version' | 'digest' | 'priority'> {
  /** The lowest ceiling of the run and those above it. */
  readonly budget_ceiling_usd: string | null;
  /** Increases with every change of one of them. */
  readonly budget_version: number;
  /** Number of runs above it. */
  readonly depth: number;
  /** Digest of the spec against which it was checked, by capability. */
  readonly specs: Readonly<Record<string, string>>;
  /** Its parent in a trace; null: it starts a trace. */
  readonly trace_parent: string | null;
  /** The run that it repeats. */
  readonly rerun_of: string | null;
  /** When a schedule planned the first run of its job. */
  readonly scheduled_at: Date | null;
  /** YYYY-MM-DD */
  readonly scheduled_date: string | null;
  readonly period_start: Date | null;
  /** Its pipeline, and key and labels of the run at the top, as its calls carry them. */
  readonly scopes: readonly string[];
  readonly definition: PipelineDefinition;
  readonly job: JsonObject;
  /** Of the project. */
  readonly on_budget: OnBudget | null;
}

/**
 * Reads a run and, the first time, marks it as running. A run that was paused meanwhile is marked as begun and stays
 * paused.
 */
export async function openRun(db: Db, runId: string): Promise<RunContextRow | undefined> {
  const { rows } = await runPrepared<RunContextRow>(db, {
    name: 'open_run',
    text: `with opened as (
       update run set state = case state when 'queued' then 'running' else state end, started_at = clock_timestamp()
       where run_id = $1 and state in ('queued', 'paused') and started_at is null returning run_id
     ), logged as (
       insert into event (run_id, type) select run_id, 'run.started' from opened where ${relaxed}
     )
     select r.run_id, r.project_id, r.job_id, r.pipeline, r.version, r.digest, r.priority,
       least(r.budget_ceiling_usd, (select min(p.budget_ceiling_usd) from unnest(r.ancestors) above (run_id)
         cross join lateral (select * from run p where p.run_id = above.run_id offset 0) p)) as budget_ceiling_usd,
       r.budget_version, r.depth, r.specs, r.trace_parent, r.rerun_of,
       planned.scheduled_at, planned.scheduled_date, planned.period_start,
       run_scopes(r.run_id) as scopes, d.body as definition, j.body as job, o.on_budget
     from run r join definition d using (digest) join job j using (job_id)
     join project o on o.project_id = r.project_id
     left join lateral (select s.scheduled_at, s.scheduled_date::text, s.period_start from run s where s.job_id = r.job_id
       and s.scheduled_at is not null order by s.scheduled_at limit 1) planned on true where r.run_id = $1`,
    values: [runId],
  });
  return rows[0];
}

/** Version of the last change of a ceiling that applies to the run; 0 if there is no such run. */
export async function readBudgetVersion(db: Db, runId: string): Promise<number> {
  const row = await db('run').where({ run_id: runId }).first<{ budget_version: number }>('budget_version');
  return row?.budget_version ?? 0;
}

export interface EndedRun {
  readonly run_id: string;
  readonly pipeline: string;
  readonly version: string;
  readonly state: Extract<RunState, 'succeeded' | 'failed' | 'cancelled'>;
  readonly output: Json;
  readonly error: Failure | null;
}

/** @returns undefined while it is open */
export function readRunEnd(db: Db, runId: string): Promise<EndedRun | undefined> {
  return db('run')
    .where({ run_id: runId })
    .whereNotNull('finished_at')
    .first('run_id', 'pipeline', 'version', 'state', 'output', 'error');
}

/** Counts the chain of runs that it repeats. */
export async function countReruns(db: Db, runId: string): Promise<number> {
  const row = await query<{ count: number }>(db).one(
    `with recursive earlier as (
       select rerun_of from run where run_id = ? and rerun_of is not null
       union all
       select r.rerun_of from earlier e join run r on r.run_id = e.rerun_of where r.rerun_of is not null
     )
     select count(*)::int as count from earlier`,
    [runId],
  );
  return row.count;
}

export interface RunEnd {
  readonly run_id: string;
  readonly state: Extract<RunState, 'succeeded' | 'failed' | 'cancelled'>;
  readonly output: Json | undefined;
  readonly error: Failure | null;
  /** Steps without a row become skipped, or cancelled with a cancelled run. Steps that had begun are cancelled. */
  readonly step_ids: readonly string[];
  /** A run with a step that has begun and not ended stays open. */
  readonly is_whole?: boolean;
}

const closeAll = `with finished as (
   update run set state = $2, output = $3, error = $4, finished_at = clock_timestamp(),
     started_at = coalesce(started_at, case when $2 = 'cancelled' then null else clock_timestamp() end),
     item_counts = case when $2 = 'succeeded' then (select jsonb_object_agg(i.state, i.count) from (
       select state, count(*) as count from step where run_id = $1 and item > 0 group by state) i) end
   where run_id = $1 and finished_at is null
     and not ($7::boolean and exists (select from step where run_id = $1 and state in ${openSteps}))
   returning run_id, cancel_mode
 ), leftover as (
   insert into step (run_id, step_id, state, finished_at)
   select f.run_id, s.step_id, $5, clock_timestamp()
   from finished f, unnest($6::text[]) with ordinality as s (step_id, at)
   order by s.at
   on conflict (run_id, step_id, item) do update
     set state = 'cancelled', finished_at = excluded.finished_at, ${waitOver}
     where step.state in ${openSteps}
   returning run_id, step_id, state
 ), others as (
   update step s set state = 'cancelled', finished_at = clock_timestamp(), ${waitOver}
   from finished f where s.run_id = f.run_id and s.state in ${openSteps}
     and (s.item > 0 or s.step_id <> all ($6::text[]))
   returning s.run_id, s.step_id, s.item
 ), logged as (
 insert into event (run_id, type, step_id, item, data)
 (select run_id, 'step.cancelled', step_id, nullif(item, 0), '{}'::jsonb from others order by step_id, item)
 union all
 select run_id, 'step.' || state, step_id, null, '{}'::jsonb from leftover
 union all
 select run_id, 'run.' || $2, null, null, jsonb_build_object('error', $4::jsonb) from finished
 where stop_children(run_id, coalesce(cancel_mode, 'graceful'), 'the run that started it has ended') >= 0
 ) select true from finished`;

/**
 * Closes a run with its unfinished steps and items, and asks its child runs to cancel. A closed run stays as it is.
 * @returns whether it was open, and is closed now
 */
export async function finishRun(db: Db, end: RunEnd): Promise<boolean> {
  const { run_id, state, output, error, step_ids, is_whole = false } = end;
  const { rows: closed } = await runPrepared(db, {
    name: 'finish_run',
    text: closeAll,
    values: [
      run_id,
      state,
      output === undefined ? null : toJson(output),
      error === null ? null : toJsonb(error),
      state === 'cancelled' ? 'cancelled' : 'skipped',
      step_ids,
      is_whole,
    ],
  });
  return closed.length > 0;
}

/** Lists steps of an open run that have begun and not ended. */
export async function listOpenSteps(db: Db, runId: string): Promise<string[]> {
  const rows = await query<{ step_id: string }>(db).all(
    `select distinct s.step_id from step s join run r using (run_id)
     where s.run_id = ? and s.state in ${openSteps} and r.finished_at is null order by 1`,
    [runId],
  );
  return rows.map(({ step_id }) => step_id);
}

/** Finds the run that an execution of a step has started. */
export async function findSubRun(
  db: Db,
  { run_id, step_id, item, revision }: StepKey,
): Promise<string | undefined> {
  const row = await query<{ run_id: string }>(db).first(
    `select run_id from run where parent_run_id = ? and parent_step_id = ? and parent_item = ?
       and parent_revision = ?`,
    [run_id, step_id, item, revision],
  );
  return row?.run_id;
}

/** Finds the run that this one repeats. */
export async function findRepeated(db: Db, runId: string): Promise<string | undefined> {
  const row = await db('run').where({ run_id: runId }).first('rerun_of');
  return row?.rerun_of ?? undefined;
}
