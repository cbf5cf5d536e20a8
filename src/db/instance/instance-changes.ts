/**
 * The routers' poll: what changed since the last one, in one snapshot. `horizon` is the oldest transaction that
 * was still open then; whatever it or a later one writes has `changed_xid >= horizon`, so the next poll, which
 * starts there, sees every change at least once.
 */

import type { Db } from '../connect.ts';
import type { InstanceRow } from './instance.ts';

export interface FeedRow
  extends Pick<
    InstanceRow,
    | 'instance_id'
    | 'name'
    | 'version'
    | 'endpoint'
    | 'cost_type'
    | 'tags'
    | 'max_concurrency'
    | 'state'
    | 'spec_digest'
    | 'duration_ms'
    | 'deviation_ms'
    | 'mean_cost_usd'
    | 'success_count'
    | 'failure_count'
    | 'settle'
  > {
  readonly rate_usd: number;
  /** Work reported beyond the calls of ours that were open then. */
  readonly reported_extra: number;
  /** Unix time by the database's clock. */
  readonly reported_at_ms: number | null;
  /** Since when it is down or deregistered. */
  readonly down_since_ms: number | null;
  readonly breaker_until_ms: number | null;
}

export interface FeedPoll {
  readonly horizon: string;
  readonly now_ms: number;
  readonly instances: readonly FeedRow[];
  /** Open attempts by instance; absent = 0. */
  readonly held: Readonly<Record<string, number>>;
}

/** @param since the last poll's horizon; `0` reads all */
export async function pollInstances(db: Db, since: string): Promise<FeedPoll> {
  const { rows } = await db.raw<{ rows: [FeedPoll] }>(
    `select pg_snapshot_xmin(pg_current_snapshot())::text as horizon,
       extract(epoch from now())::double precision * 1000 as now_ms,
       coalesce((select json_agg(row_to_json(changed)) from (
         select instance_id, name, version, endpoint, cost_type, rate_usd, tags, max_concurrency, state, spec_digest,
           duration_ms, deviation_ms, mean_cost_usd, success_count, failure_count, settle,
           greatest(0, coalesce(queue_depth, 0) - queue_depth_held) as reported_extra,
           extract(epoch from queue_depth_at)::double precision * 1000 as reported_at_ms,
           extract(epoch from down_since)::double precision * 1000 as down_since_ms,
           extract(epoch from breaker_until)::double precision * 1000 as breaker_until_ms
         from instance where changed_xid >= ?::xid8 order by instance_id) changed), '[]') as instances,
       coalesce((select json_object_agg(instance_id, calls) from (
         select instance_id, count(*) as calls from attempt
         where state in ('reserved', 'dispatched') group by 1) open), '{}') as held`,
    [since],
  );
  return rows[0];
}
