/** Reading runs: one, or a page of a project's, newest first. Ids sort by time. */
import type { DecidedRoute } from '../../contracts/dispatch.ts';
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import type { Failure, Json, JsonObject, Priority } from '../../contracts/primitives.ts';
import type { Awaiting, RunState } from '../../contracts/run.ts';
import type { Db } from '../connect.ts';
import {
  awaitedByStep,
  awaitingOfRun,
  followsOfRun,
  type RunStandingColumns,
  runsWithin,
  type StepCountColumns,
  stepsOfRun,
} from './run-standing.ts';

export interface RunRow extends RunStandingColumns {
  readonly run_id: string;
  readonly project_id: string;
  readonly job_id: string;
  readonly pipeline: string;
  readonly version: string;
  readonly state: RunState;
  readonly priority: Priority;
  readonly budget_ceiling_usd: string | null;
  readonly labels: Record<string, string>;
  readonly error: Failure | null;
  readonly rerun_of: string | null;
  readonly parent_run_id: string | null;
  readonly parent_step_id: string | null;
  readonly parent_item: number | null;
  readonly schedule_id: string | null;
  readonly created_at: Date;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
  readonly cost_nano: string;
  readonly reserved_nano: string;
}

export interface RunFilter {
  readonly pipeline?: string | undefined;
  readonly state?: RunState | undefined;
  /** Only those under way of which a step waits for it. */
  readonly awaiting?: Awaiting | undefined;
  /** Part of the pipeline's name, of a label as `name=value`, or the begin of the id. */
  readonly q?: string | undefined;
  /** none: only those that no step has started. */
  readonly parent?: 'none' | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly label?: readonly [string, string] | undefined;
  /** The last run of the page before. */
  readonly after?: string | undefined;
  readonly limit: number;
}

const columns = `r.run_id, r.project_id, r.job_id, r.pipeline, r.version, r.state, r.priority,
  r.budget_ceiling_usd, r.labels, r.error, r.rerun_of, r.parent_run_id, r.parent_step_id, r.parent_item,
  r.schedule_id, r.created_at, r.started_at, r.finished_at,
  coalesce(a.cost_nano, 0) as cost_nano, coalesce(a.reserved_nano, 0) as reserved_nano,
  ${awaitingOfRun} as awaiting, ${followsOfRun} as follows`;

/** With all runs below it. */
const money = `left join lateral (
    select sum(settled_nano) as cost_nano,
      sum(reserved_nano) filter (where state in ('reserved', 'dispatched')) as reserved_nano
    from attempt where attempt.run_id = any (${runsWithin})
  ) a on true`;

const awaitsIt = `r.finished_at is null and exists (select from step s where s.run_id = any (${runsWithin})
  and s.state in ('waiting', 'in_review', 'retrying') and ${awaitedByStep} = :awaiting)`;

const mentions = `(r.pipeline ilike '%' || :q || '%' or r.run_id ilike :q || '%' or exists (
  select from jsonb_each_text(r.labels) l where l.key || '=' || l.value ilike '%' || :q || '%'))`;

export type RunListRow = RunRow & StepCountColumns;

export async function listRuns(db: Db, projectId: string, filter: RunFilter): Promise<readonly RunListRow[]> {
  const query = db('run as r')
    .joinRaw(money)
    .select(db.raw(`${columns}, r.digest, ${stepsOfRun} as step_counts`))
    .where('r.project_id', projectId)
    .orderBy('r.run_id', 'desc')
    .limit(filter.limit);
  if (filter.pipeline !== undefined) query.where('r.pipeline', filter.pipeline);
  if (filter.state !== undefined) query.where('r.state', filter.state);
  if (filter.awaiting !== undefined) query.whereRaw(awaitsIt, { awaiting: filter.awaiting });
  if (filter.q !== undefined) query.whereRaw(mentions, { q: filter.q.replace(/[\\%_]/g, '\\$&') });
  if (filter.parent === 'none') query.whereNull('r.parent_run_id');
  if (filter.since !== undefined) query.where('r.created_at', '>=', filter.since);
  if (filter.until !== undefined) query.where('r.created_at', '<', filter.until);
  if (filter.label !== undefined) {
    query.whereRaw('r.labels @> ?::jsonb', [JSON.stringify(Object.fromEntries([filter.label]))]);
  }
  if (filter.after !== undefined) {
    query.where('r.run_id', '<', filter.after);
  }
  return query;
}

export interface RunDetailRow extends RunRow {
  readonly definition: PipelineDefinition;
  readonly dispatch: readonly DecidedRoute[];
  readonly output: Json;
  /** Tells an output of null from none. */
  readonly has_output: boolean;
  readonly job: JsonObject;
}

export async function readRun(db: Db, projectId: string, runId: string): Promise<RunDetailRow | undefined> {
  const { rows } = await db.raw<{ rows: RunDetailRow[] }>(
    `select ${columns}, d.body as definition, r.dispatch, r.output, r.output is not null as has_output, j.body as job
     from run r join definition d using (digest) join job j using (job_id) ${money}
     where r.run_id = ? and r.project_id = ?`,
    [runId, projectId],
  );
  return rows[0];
}
