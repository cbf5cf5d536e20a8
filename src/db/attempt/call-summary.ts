/** Results of a project's calls: in a time span by capability, and the last ones of each instance. */
import type { Db } from '../connect.ts';
import { instantText, query } from '../statements.ts';

export interface CallSummaryRow {
  readonly name: string;
  readonly calls: number;
  readonly succeeded: number;
  /** Of the successful calls; null if there are none. */
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
  readonly last_error: { readonly at: string; readonly code: string; readonly message: string } | null;
}

interface CallSpan {
  readonly since: Date;
  readonly until: Date;
  /** Attempt ids of the span, from boundsOfIds: an index of the project finds them. */
  readonly ids: readonly [from: string, to: string];
}

/** Summarises calls that were sent and have ended. A lost response counts as a failure. */
export function summariseCalls(
  db: Db,
  projectId: string,
  { since, until, ids: [from, to] }: CallSpan,
): Promise<readonly CallSummaryRow[]> {
  return query<CallSummaryRow>(db).all(
    `with ended as (
       select attempt_id, capability, duration_ms, state = 'settled' and error is null as is_good
       from attempt
       where project_id = :projectId and attempt_id collate "C" between :from and :to
         and started_at >= :since and started_at < :until and state in ('settled', 'lost')
     ), summed as (
       select capability as name, count(*)::int as calls, (count(*) filter (where is_good))::int as succeeded,
         percentile_cont(0.5) within group (order by duration_ms) filter (where is_good) as p50_ms,
         percentile_cont(0.95) within group (order by duration_ms) filter (where is_good) as p95_ms,
         max(attempt_id) filter (where not is_good) as failed_id
       from ended group by capability
     )
     select s.name, s.calls, s.succeeded, s.p50_ms, s.p95_ms, case when a.error is not null then json_build_object(
       'at', ${instantText('coalesce(a.finished_at, a.started_at)')},
       'code', a.error ->> 'code', 'message', a.error ->> 'message') end as last_error
     from summed s left join attempt a on a.attempt_id = s.failed_id
     order by s.name collate "C"`,
    { projectId, from, to, since, until },
  );
}

export interface LastCallRow {
  readonly name: string;
  readonly endpoint: string;
  readonly at: Date;
  readonly is_good: boolean;
  /** Code of its failure. */
  readonly error: string | null;
  readonly duration_ms: number | null;
  /** bigint as text */
  readonly cost_nano: string;
}

/**
 * The newest calls of each instance that serves the project. Calls that were never sent do not count.
 * @param from the least attempt id
 */
export function listLastCalls(
  db: Db,
  projectId: string,
  { from, last }: { readonly from: string; readonly last: number },
): Promise<readonly LastCallRow[]> {
  return query<LastCallRow>(db).all(
    `select n.name, n.endpoint, l.* from (
       select distinct i.name, i.endpoint from instance i
       where i.state <> 'deregistered' and serves(i.owner_project, i.shared_with, :projectId)
     ) n
     cross join lateral (
       select a.started_at as at, a.state = 'settled' and a.error is null as is_good, a.error ->> 'code' as error,
         a.duration_ms, coalesce(a.settled_nano, 0)::text as cost_nano
       from attempt a
       where a.project_id = :projectId and a.endpoint = n.endpoint and a.capability = n.name
         and a.attempt_id collate "C" >= :from and a.finished_at is not null and a.state in ('settled', 'lost')
       order by a.attempt_id collate "C" desc limit :last
     ) l
     order by n.name collate "C", n.endpoint collate "C", l.at desc`,
    { projectId, from, last },
  );
}
