/**
 * Reads runs: one, a page of a project's runs in the order of their starts (ids sort by time), or those with log
 * entries between two horizons.
 *
 * Columns for any query over a run `r` show what it waits for, each by an index of its run alone.
 */

import type { DecidedRoute } from '@capstan/core/contracts/decision';
import type { EventType } from '@capstan/core/contracts/event';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Failure, Json, JsonObject } from '@capstan/core/contracts/primitives';
import {
  type RunQuery,
  type RunState,
  type StalledRun,
  terminalRunStates,
} from '@capstan/core/contracts/run';
import type { CancelRequest } from '@capstan/core/contracts/run-control';
import type { StepState } from '@capstan/core/contracts/run-step';
import type { Knex } from 'knex';
import type { Db } from '../connect.ts';
import { asksForMoney } from '../review/review.ts';
import { query } from '../statements.ts';
import { versionsOf } from './rerun.ts';
import { type RunRow, type RunStandingColumns, shownRunColumns } from './run-columns.ts';

/**
 * The cause of the wait of a step or item `s`. If it is retried for want of an instance or money, it waits for that.
 */
const awaitedByStep = `case s.state when 'in_review' then case when ${asksForMoney} then 'budget' else 'review' end when 'waiting' then s.awaiting
   when 'retrying' then case s.error ->> 'code' when 'no_instance' then 'capability' when 'budget_reserved' then 'budget' end
   end`;

/** Ids of the run and of all runs below it. */
export const runsWithin = `case when exists (select from run b where b.parent_run_id = r.run_id)
   then with_runs_below(r.run_id) else array[r.run_id] end`;

/** The distinct causes of waits of its steps and items, and of the runs below it; empty if it has ended. */
const awaitingOfRun = `case when r.finished_at is not null then '{}' else array(
   select distinct w.awaited from step s cross join lateral (select ${awaitedByStep} as awaited) w
   where s.run_id = any (${runsWithin}) and s.state in ('waiting', 'in_review', 'retrying') and w.awaited is not null
   order by 1) end`;

/** Number of its steps by state, of those that have a row. */
const stepsOfRun = `(select coalesce(json_object_agg(state, steps), '{}') from (
   select state, count(*)::int as steps from step where run_id = r.run_id and item = 0 group by state) t)`;

/**
 * The ladder with the same failure that one of its own ladders waits for before it asks for advice (L9). A ladder that
 * has given up the wait asks immediately, and is recognised by its own advice.
 */
const followsOfRun = `case when r.finished_at is null then (
   select json_strip_nulls(json_build_object('escalation_id', l.escalation_id, 'run_id', l.run_id, 'step_id', l.step_id,
     'review_id', case l.state when 'in_review' then l.review_id end))
   from escalation e join escalation l on l.escalation_id = e.leader_id
   where e.run_id = r.run_id and e.state = 'running' and e.escalation_advice = '[]'
     and l.state in ('running', 'in_review')
   order by e.escalation_id limit 1) end`;

const withSameKey =
  'k.project_id = r.project_id and k.concurrency_key = r.concurrency_key and k.finished_at is null';

/** Why a queued run has not begun; the indexes run_unadmitted and run_admitted count and list the runs with its key. */
const queueOfRun = `case when r.state = 'queued' and r.started_at is null then case
   when r.concurrency_key is not null and r.admitted_at is null then json_build_object('reason', 'concurrency',
     'key', r.concurrency_key, 'limit', r.concurrency_limit,
     'place', (select count(*)::int from run k where ${withSameKey} and k.admitted_at is null and k.state = 'queued'
       and (k.created_at, k.run_id) <= (r.created_at, r.run_id)),
     'holders', array(select k.run_id from run k where ${withSameKey} and k.admitted_at is not null
       order by k.admitted_at, k.run_id limit 3))
   when r.start_delivered_at is null then json_build_object('reason', 'temporal')
   else json_build_object('reason', 'worker') end end`;

export interface StepCountColumns {
  readonly digest: string;
  readonly step_counts: Readonly<Partial<Record<StepState, number>>>;
  /** For a run that succeeded and has items. */
  readonly item_counts: Readonly<Partial<Record<StepState, number>>> | null;
}

interface RunFilter extends Omit<RunQuery, 'cursor' | 'order'> {
  /** Only these. */
  readonly run_ids?: readonly string[] | undefined;
  readonly order?: RunQuery['order'];
  /** The last run of the previous page. */
  readonly after?: string | undefined;
}

const columns = `${shownRunColumns.map((column) => `r.${column}`).join(', ')},
  coalesce(a.cost_nano, 0) as cost_nano, coalesce(a.reserved_nano, 0) as reserved_nano,
  ${awaitingOfRun} as awaiting, ${followsOfRun} as follows, ${queueOfRun} as queue,
  (select n.run_id from run n where n.rerun_of = r.run_id order by n.run_id desc limit 1) as superseded_by`;

/** Cost and reservations, including all runs below it. */
const money = `left join lateral (
    select sum(settled_nano) as cost_nano,
      sum(reserved_nano) filter (where state in ('reserved', 'dispatched')) as reserved_nano
    from attempt where attempt.run_id = any (${runsWithin})
  ) a on true`;

const awaitsIt = `r.finished_at is null and exists (select from step s where s.run_id = any (${runsWithin})
  and s.state in ('waiting', 'in_review', 'retrying') and ${awaitedByStep} = :awaiting)`;

const mentions = `(r.pipeline ilike '%' || :q || '%' or r.run_id ilike :q || '%'
  or (r.error ->> 'code') || ': ' || (r.error ->> 'message') ilike '%' || :q || '%' or exists (
  select from jsonb_each_text(r.labels) l where l.key || '=' || l.value ilike '%' || :q || '%'))`;

/** The collation of run_listed, which the primary key lacks: only that index serves this order. */
const id = 'r.run_id collate "C"';

export type RunListRow = RunRow & StepCountColumns;

/** Runs of a project that one page of a search examines, even without a match: no index finds parts of texts. */
export const mostSearched = 10_000;

type SearchOrder = Pick<RunFilter, 'after' | 'order'>;

function direction({ order }: SearchOrder): string {
  return order === 'oldest' ? 'asc' : 'desc';
}

/** Compares ids in the direction of the list. */
function beyond({ order }: SearchOrder): string {
  return order === 'oldest' ? '>' : '<';
}

/** The runs that one page examines. */
function pageOfSearch(db: Db, projectId: string, filter: SearchOrder) {
  const query = db('run').where('project_id', projectId);
  if (filter.after !== undefined) query.whereRaw(`run_id collate "C" ${beyond(filter)} ?`, [filter.after]);
  return query.orderByRaw(`run_id collate "C" ${direction(filter)}`);
}

/** The last run that a page of a search examined; undefined if no more follow it. */
export async function findEndOfSearch(
  db: Db,
  projectId: string,
  filter: SearchOrder,
): Promise<string | undefined> {
  const query = pageOfSearch(db, projectId, filter).offset(mostSearched - 1);
  const row = await query.first<{ readonly run_id: string } | undefined>('run_id');
  return row?.run_id;
}

export type RunMatch = Omit<RunFilter, 'limit' | 'order' | 'after'>;

const newerRuns = 'select from run n where n.rerun_of = r.run_id';

/** Restricts a query over a run `r`. */
export function addFilter(query: Knex.QueryBuilder, filter: RunMatch): void {
  if (filter.run_ids !== undefined) query.whereRaw('r.run_id = any (?)', [[...filter.run_ids]]);
  if (filter.pipeline !== undefined) query.where('r.pipeline', filter.pipeline);
  if (filter.state !== undefined) query.where('r.state', filter.state);
  // Lets the index run_open serve the query: most rows have ended.
  if (filter.state !== undefined && !terminalRunStates.has(filter.state)) query.whereNull('r.finished_at');
  if (filter.schedule_id !== undefined) query.where('r.schedule_id', filter.schedule_id);
  if (filter.awaiting !== undefined) query.whereRaw(awaitsIt, { awaiting: filter.awaiting });
  if (filter.q !== undefined) query.whereRaw(mentions, { q: filter.q.replace(/[\\%_]/g, '\\$&') });
  if (filter.parent === 'none') query.whereNull('r.parent_run_id');
  if (filter.superseded === 'none') query.whereRaw(`not exists (${newerRuns})`);
  if (filter.superseded === 'only') query.whereRaw(`exists (${newerRuns})`);
  if (filter.since !== undefined) query.where('r.created_at', '>=', filter.since);
  if (filter.until !== undefined) query.where('r.created_at', '<', filter.until);
  if (filter.label !== undefined) {
    query.whereRaw('r.labels @> ?::jsonb', [JSON.stringify(Object.fromEntries([filter.label]))]);
  }
}

export async function listRuns(db: Db, projectId: string, filter: RunFilter): Promise<readonly RunListRow[]> {
  const { q, after } = filter;
  const query = db
    .from(q === undefined ? 'run as r' : pageOfSearch(db, projectId, filter).limit(mostSearched).as('r'))
    .joinRaw(money)
    .select(db.raw(`${columns}, r.digest, r.item_counts, ${stepsOfRun} as step_counts`))
    .where('r.project_id', projectId)
    .orderByRaw(`${id} ${direction(filter)}`)
    .limit(filter.limit);
  addFilter(query, filter);
  if (after !== undefined) query.whereRaw(`${id} ${beyond(filter)} ?`, [after]);
  return query;
}

/** The number of runs in each state. */
export async function countRuns(
  db: Db,
  projectId: string,
  filter: RunMatch,
): Promise<Partial<Record<RunState, number>>> {
  const query = db('run as r').where('r.project_id', projectId);
  addFilter(query, filter);
  const rows: readonly { state: RunState; runs: number }[] = await query
    .select('r.state', db.raw('count(*)::int as runs'))
    .groupBy('r.state');
  return Object.fromEntries(rows.map(({ state, runs }) => [state, runs]));
}

export interface RunDetailRow extends RunRow {
  readonly definition: PipelineDefinition;
  readonly dispatch: readonly DecidedRoute[];
  readonly output: Json;
  /** Distinguishes a null output from none. */
  readonly has_output: boolean;
  readonly job: JsonObject;
  readonly started_by: ActorColumn | null;
  readonly cancel_requested_at: Date | null;
  readonly cancel_mode: CancelRequest['mode'] | null;
  readonly cancel_reason: string | null;
  readonly cancelled_by: ActorColumn | null;
  /** The versions that aliases of child pipelines named, by reference. */
  readonly versions: Readonly<Record<string, string>>;
  readonly paused_at: Date | null;
  readonly paused_by: ActorColumn | null;
}

interface ActorColumn {
  readonly id: string;
  readonly name?: string;
}

/** The actor of an event of the run `r`, from the log, which lives as long as the run. */
function actorOf(type: EventType): string {
  return `(select json_strip_nulls(json_build_object('id', e.data ->> 'by', 'name', k.name))
     from event e left join api_key k on k.key_id = e.data ->> 'by'
     where e.run_id = r.run_id and e.type = '${type}' and e.data ->> 'by' is not null order by e.xid desc, e.id desc limit 1)`;
}

export function readRun(db: Db, projectId: string, runId: string): Promise<RunDetailRow | undefined> {
  return query<RunDetailRow>(db).first(
    `select ${columns}, d.body as definition, r.dispatch, r.output, r.output is not null as has_output, j.body as job,
       ${actorOf('run.queued')} as started_by, r.cancel_requested_at, r.cancel_mode, r.cancel_reason, r.paused_at,
       case when r.cancel_requested_at is not null then ${actorOf('run.cancelling')} end as cancelled_by,
       case when r.paused_at is not null then ${actorOf('run.paused')} end as paused_by,
       ${versionsOf('r')} as versions
     from run r join definition d using (digest) join job j using (job_id) ${money}
     where r.run_id = ? and r.project_id = ?`,
    [runId, projectId],
  );
}

/** A span of the log, from one horizon to another. */
export interface LogSpan {
  readonly from: string;
  readonly to: string;
}

/**
 * Lists open runs, and those that ended after `endedSince`, each with the runs above it: the cost and the waits of a
 * run include those of all runs below it.
 */
export async function listChangedRuns(
  db: Db,
  projectId: string,
  { from, to, endedSince, limit }: LogSpan & { readonly endedSince: Date; readonly limit: number },
): Promise<readonly string[]> {
  const rows = await query<{ run_id: string }>(db).all(
    `with changed as (
       select r.run_id from (
         select run_id from run where project_id = :projectId and finished_at is null
         union all
         select run_id from run where project_id = :projectId and finished_at > :endedSince
       ) r where exists (
         select from event e where e.run_id = r.run_id and e.xid >= :from::text::xid8 and e.xid < :to::text::xid8)
       limit :limit
     )
     select run_id from changed
     union
     select unnest(line.ancestors) from changed c
       cross join lateral (select ancestors from run r where r.run_id = c.run_id offset 0) line`,
    { projectId, from, to, endedSince, limit },
  );
  return rows.map(({ run_id }) => run_id);
}

export interface RunStandingRow extends RunStandingColumns, StepCountColumns {
  readonly run_id: string;
  readonly pipeline: string;
  readonly state: RunState;
  readonly error: Failure | null;
  readonly stalled: StalledRun | null;
  /** bigint as text; includes all runs below it */
  readonly cost_nano: string;
  readonly reserved_nano: string;
}

export async function listRunStandings(
  db: Db,
  runIds: readonly string[],
): Promise<readonly RunStandingRow[]> {
  if (runIds.length === 0) return [];
  return query<RunStandingRow>(db).all(
    `select r.run_id, r.pipeline, r.digest, r.state, r.error, r.item_counts, ${awaitingOfRun} as awaiting,
       ${followsOfRun} as follows, r.stalled, ${stepsOfRun} as step_counts,
       coalesce(a.cost_nano, 0)::text as cost_nano, coalesce(a.reserved_nano, 0)::text as reserved_nano
     from run r
     left join lateral (
       select sum(settled_nano) as cost_nano,
         sum(reserved_nano) filter (where state in ('reserved', 'dispatched')) as reserved_nano
       from attempt where attempt.run_id = any (${runsWithin})
     ) a on true
     where r.run_id = any (?)`,
    [[...runIds]],
  );
}

/** Number of steps of a definition, by digest. */
export async function countDefinitionSteps(
  db: Db,
  digests: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await query<{ digest: string; steps: number }>(db).all(
    `select digest, json_array_length(body -> 'steps') as steps from definition where digest = any (?)`,
    [[...digests]],
  );
  return new Map(rows.map(({ digest, steps }) => [digest, steps]));
}

/** Counts the events of a run before a horizon, which is the number of the last of them. */
export async function countEventsBefore(db: Db, runId: string, horizon: string): Promise<number> {
  const row = await query<{ count: number }>(db).one(
    'select count(*)::int as count from event where run_id = ? and xid < ?::text::xid8',
    [runId, horizon],
  );
  return row.count;
}

/** Selects the runs of the project. */
export async function listOwnRuns(
  db: Db,
  projectId: string,
  runIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await db('run')
    .where({ project_id: projectId })
    .whereIn('run_id', [...runIds])
    .select('run_id');
  return new Set(rows.map(({ run_id }) => run_id));
}
