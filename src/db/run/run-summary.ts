/**
 * Runs of a project in time. Their ids begin with the time at which they were made, so the list's index finds them; what
 * they cost is read from paid calls alone.
 */
import type { RunState } from '../../contracts/run.ts';
import type { Db } from '../connect.ts';

export interface SummaryBucketRow {
  /** From 0 on. */
  readonly bucket: number;
  readonly state: RunState;
  readonly runs: number;
  /** numeric as text */
  readonly cost_nano: string;
}

export interface SummarySpan {
  readonly since: Date;
  readonly until: Date;
  readonly buckets: number;
  readonly pipeline: string | undefined;
  readonly label: readonly [name: string, value: string] | undefined;
  /** Ids of runs that may have been made in it. */
  readonly ids: readonly [from: string, to: string];
}

export async function summariseRuns(
  db: Db,
  projectId: string,
  { since, until, buckets, pipeline, label, ids }: SummarySpan,
): Promise<readonly SummaryBucketRow[]> {
  const { rows } = await db.raw<{ rows: SummaryBucketRow[] }>(
    `with chosen as materialized (
       select run_id, state, least(:buckets - 1, floor(:buckets * extract(epoch from created_at - :since::timestamptz)
         / extract(epoch from :until::timestamptz - :since::timestamptz)))::int as bucket
       from run where project_id = :projectId and run_id >= :first and run_id < :last
         and created_at >= :since::timestamptz and created_at < :until::timestamptz
         and (:pipeline::text is null or pipeline = :pipeline)
         and (:labels::jsonb is null or labels @> :labels::jsonb)
     ), paid as (
       select a.run_id, sum(a.settled_nano) as nano from attempt a
       where a.reserved_nano > 0 and a.project_id = :projectId and a.run_id in (select run_id from chosen)
         and a.budget_window >= (:since::timestamptz - interval '2 days')::date
       group by a.run_id
     )
     select bucket, state, count(*)::int as runs, coalesce(sum(nano), 0)::text as cost_nano
     from chosen left join paid using (run_id) group by bucket, state`,
    {
      projectId,
      since: since.toISOString(),
      until: until.toISOString(),
      buckets,
      pipeline: pipeline ?? null,
      labels: label === undefined ? null : JSON.stringify(Object.fromEntries([label])),
      first: ids[0],
      last: ids[1],
    },
  );
  return rows;
}
