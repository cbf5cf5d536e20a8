/** How much stands open in the database, for metrics: each statement reads an index that holds little else. */
import type { Awaiting, RunState } from '../../contracts/run.ts';
import type { Db } from '../connect.ts';

export interface OpenRunCount {
  readonly state: RunState;
  readonly count: number;
}

export async function countOpenRuns(db: Db): Promise<readonly OpenRunCount[]> {
  const { rows } = await db.raw<{ rows: OpenRunCount[] }>(
    'select state, count(*)::int as count from run where finished_at is null group by state',
  );
  return rows;
}

export interface WaitingStepCount {
  readonly awaiting: Awaiting;
  /** That it waits for, or has just been woken by; empty: something else. */
  readonly capability: string;
  readonly count: number;
}

export async function countWaitingSteps(db: Db): Promise<readonly WaitingStepCount[]> {
  const { rows } = await db.raw<{ rows: WaitingStepCount[] }>(
    `select s.awaiting, coalesce(s.awaited_capability, '') as capability, count(*)::int as count
     from run r join step s using (run_id)
     where r.finished_at is null and s.awaiting is not null group by 1, 2`,
  );
  return rows;
}

export interface OpenReviewCount {
  readonly kind: string;
  readonly state: 'open' | 'claimed';
  readonly count: number;
  readonly oldest_s: number;
}

export async function countOpenReviews(db: Db): Promise<readonly OpenReviewCount[]> {
  const { rows } = await db.raw<{ rows: OpenReviewCount[] }>(
    `select kind, state, count(*)::int as count,
       extract(epoch from clock_timestamp() - min(created_at))::float8 as oldest_s
     from review where state in ('open', 'claimed') group by kind, state`,
  );
  return rows;
}

export interface Lateness {
  /** Age of the oldest row that Temporal should have been told of; 0 where there is none. */
  readonly delivery_s: number;
  /** Age of the oldest transaction of the cluster that has an id: readers of events wait for it. */
  readonly horizon_s: number;
}

/** Transactions of other roles are seen by members of pg_read_all_stats alone. */
export async function readLateness(db: Db): Promise<Lateness> {
  const { rows } = await db.raw<{ rows: [Lateness] }>(
    `select coalesce(greatest(0, extract(epoch from clock_timestamp() - least(
         (select min(coalesce(admitted_at, created_at)) from run
           where start_delivered_at is null and finished_at is null
             and (concurrency_key is null or admitted_at is not null)),
         (select min(cancel_requested_at) from run
           where cancel_requested_at is not null and cancel_delivered_at is null and finished_at is null),
         (select min(decided_at) from review where state in ('resolved', 'expired') and delivered_at is null),
         (select min(created_at) from escalation
           where run_id is null and start_delivered_at is null and finished_at is null)))), 0)::float8 as delivery_s,
       coalesce(greatest(0, extract(epoch from clock_timestamp() - least(
         (select min(xact_start) from pg_stat_activity where backend_xid is not null),
         (select min(prepared) from pg_prepared_xacts)))), 0)::float8 as horizon_s`,
  );
  return rows[0];
}
