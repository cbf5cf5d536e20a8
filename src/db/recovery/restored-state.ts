/** What a database that was restored holds of work that goes on. */
import type { Db } from '../connect.ts';

export interface RestoredState {
  /** The last thing that it knows of; null: it is empty. */
  readonly last_at: Date | null;
  readonly open_runs: number;
  /** Starts that Temporal had not taken yet. */
  readonly undelivered_starts: number;
  /** Calls that were under way. */
  readonly open_calls: number;
  readonly open_reviews: number;
  readonly pending_webhooks: number;
}

export async function readRestoredState(db: Db): Promise<RestoredState> {
  const { rows } = await db.raw<{ rows: [RestoredState] }>(
    `select greatest((select max(created_at) from (select created_at from run order by run_id desc limit 100) r),
         (select greatest(max(started_at), max(finished_at))
           from (select started_at, finished_at from attempt order by attempt_id desc limit 100) a)) as last_at,
       (select count(*)::int from run where finished_at is null) as open_runs,
       (select count(*)::int from run where finished_at is null and start_delivered_at is null) as undelivered_starts,
       (select count(*)::int from attempt where state in ('reserved', 'dispatched')) as open_calls,
       (select count(*)::int from review where state in ('open', 'claimed')) as open_reviews,
       (select count(*)::int from webhook_delivery where state = 'pending') as pending_webhooks`,
  );
  return rows[0];
}

export interface InterruptedCall {
  readonly attempt_id: string;
  readonly run_id: string | null;
  readonly step_id: string | null;
  readonly item: number | null;
  readonly capability: string;
  readonly endpoint: string;
}

export interface OpenRun {
  readonly run_id: string;
  readonly pipeline: string;
  /** Whether Temporal had taken its start. */
  readonly is_delivered: boolean;
}

/** By id, after `after`: runs that have not ended. */
export async function listOpenRuns(db: Db, after: string, limit: number): Promise<readonly OpenRun[]> {
  const { rows } = await db.raw<{ rows: OpenRun[] }>(
    `select run_id, pipeline, start_delivered_at is not null as is_delivered from run
     where finished_at is null and run_id > ? order by run_id limit ?`,
    [after, limit],
  );
  return rows;
}

/** Calls that were under way: nobody knows how they ended. */
export async function listInterruptedCalls(db: Db, limit: number): Promise<readonly InterruptedCall[]> {
  return db('attempt')
    .whereIn('state', ['reserved', 'dispatched'])
    .orderBy('attempt_id')
    .limit(limit)
    .select('attempt_id', 'run_id', 'step_id', 'item', 'capability', 'endpoint');
}
