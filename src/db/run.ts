/** Queries that move a run from one state to the next. Listing is in run-list.ts. */
import type { PipelineDefinition } from '../contracts/pipeline.ts';
import type { Failure, Json, JsonObject, Priority } from '../contracts/primitives.ts';
import type { RunState } from '../contracts/run.ts';
import { type Db, relaxed } from './connect.ts';
import { toJsonb } from './jsonb.ts';

export interface NewRun {
  readonly run_id: string;
  readonly project_id: string;
  readonly job_id: string;
  readonly pipeline: string;
  readonly version: string;
  readonly digest: string;
  readonly priority: Priority;
  readonly budget_ceiling_usd: number | null;
  readonly labels: Readonly<Record<string, string>>;
}

export const insertRun = async (db: Db, run: NewRun): Promise<void> => {
  await db('run').insert({ ...run, labels: JSON.stringify(run.labels) });
  await db('event').insert({
    run_id: run.run_id,
    type: 'run.queued',
    data: JSON.stringify({ pipeline: run.pipeline, version: run.version, job_id: run.job_id }),
  });
};

/** Everything that a worker needs of a run; none of it changes. */
export interface RunContextRow {
  readonly run_id: string;
  readonly project_id: string;
  readonly job_id: string;
  readonly pipeline: string;
  readonly version: string;
  readonly digest: string;
  readonly priority: Priority;
  readonly budget_ceiling_usd: string | null;
  readonly definition: PipelineDefinition;
  readonly job: JsonObject;
}

/** Reads a run and, the first time, marks it as running. */
export const openRun = async (db: Db, runId: string): Promise<RunContextRow | undefined> => {
  const { rows } = await db
    .raw<{ rows: RunContextRow[] }>(
      `with opened as (
       update run set state = 'running', started_at = clock_timestamp()
       where run_id = :runId and state = 'queued' returning run_id
     ), logged as (
       insert into event (run_id, type) select run_id, 'run.started' from opened where ${relaxed}
     )
     select r.run_id, r.project_id, r.job_id, r.pipeline, r.version, r.digest, r.priority,
       r.budget_ceiling_usd, d.body as definition, j.body as job
     from run r join definition d using (digest) join job j using (job_id) where r.run_id = :runId`,
      { runId },
    )
    .options({ name: 'open_run' });
  return rows[0];
};

/** Asks for a cancel. @returns false when the run has ended or does not exist */
export const requestCancel = async (
  db: Db,
  projectId: string,
  runId: string,
  reason: string | null,
): Promise<boolean> => {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `with asked as (
       update run set state = 'cancelling', cancel_requested_at = clock_timestamp(), cancel_reason = :reason
       where run_id = :runId and project_id = :projectId and state in ('queued', 'running') returning run_id
     ), logged as (
       insert into event (run_id, type, data)
       select run_id, 'run.cancelling', jsonb_build_object('reason', :reason::text) from asked
     )
     select 1 from run where run_id = :runId and project_id = :projectId
       and state in ('queued', 'running', 'cancelling')`,
    { runId, projectId, reason },
  );
  return rows.length > 0;
};

export interface RunEnd {
  readonly run_id: string;
  readonly state: Extract<RunState, 'succeeded' | 'failed' | 'cancelled'>;
  readonly output: Json | undefined;
  readonly error: Failure | null;
  /** Those of them without an end become skipped; cancelled when the run was cancelled. */
  readonly step_ids: readonly string[];
}

/** Closes a run and the steps that never came to an end. A run that is closed stays as it is. */
export const finishRun = async (db: Db, end: RunEnd): Promise<void> => {
  await db
    .raw(
      `with finished as (
       update run set state = :state, output = :output, error = :error, finished_at = clock_timestamp(),
         started_at = coalesce(started_at, case when :state = 'cancelled' then null else clock_timestamp() end)
       where run_id = :run_id and finished_at is null returning run_id
     ), leftover as (
       insert into step (run_id, step_id, state, finished_at)
       select f.run_id, s.step_id, :leftover, clock_timestamp()
       from finished f, unnest(:step_ids::text[]) with ordinality as s (step_id, at)
       order by s.at
       on conflict (run_id, step_id, item) do update set state = excluded.state, finished_at = excluded.finished_at
         where step.state in ('ready', 'running', 'retrying', 'in_review')
       returning run_id, step_id
     )
     insert into event (run_id, type, step_id, data)
     select run_id, 'step.' || :leftover, step_id, '{}'::jsonb from leftover
     union all
     select run_id, 'run.' || :state, null, jsonb_build_object('error', :error::jsonb) from finished`,
      {
        run_id: end.run_id,
        state: end.state,
        output: end.output === undefined ? null : JSON.stringify(end.output),
        error: end.error === null ? null : toJsonb(end.error),
        leftover: end.state === 'cancelled' ? 'cancelled' : 'skipped',
        step_ids: [...end.step_ids],
      },
    )
    .options({ name: 'finish_run' });
};
