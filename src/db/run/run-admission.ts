/**
 * Runs with the same concurrency key of a project are admitted in order of arrival, up to the limit that each of them
 * sets. A lock on the key, held until the transaction ends, allows one decision at a time.
 */

import type { Db } from '../connect.ts';
import { takeLock } from '../locks.ts';
import { query } from '../statements.ts';

export interface ConcurrencyKey {
  readonly project_id: string;
  readonly concurrency_key: string;
}

/** Lock several keys in sorted order. */
export async function lockAdmission(trx: Db, { project_id, concurrency_key }: ConcurrencyKey): Promise<void> {
  await takeLock(trx, 'admission', project_id, concurrency_key);
}

export interface AdmissionCount {
  /** Admitted and not ended. */
  readonly admitted: number;
  /** Neither admitted nor ended. */
  readonly waiting: number;
}

const isWaiting = 'concurrency_key is not null and finished_at is null and admitted_at is null';
const isAdmitted = 'concurrency_key is not null and finished_at is null and admitted_at is not null';

export function countAdmissions(trx: Db, key: ConcurrencyKey): Promise<AdmissionCount> {
  return query<AdmissionCount>(trx).one(
    `select (select count(*)::int from run where project_id = :project_id and concurrency_key = :concurrency_key
         and ${isAdmitted}) as admitted,
       (select count(*)::int from run where project_id = :project_id and concurrency_key = :concurrency_key
         and ${isWaiting}) as waiting`,
    { ...key },
  );
}

/** Whether the run, or one above it, has this key. */
export async function hasKeyAbove(db: Db, runId: string, concurrencyKey: string): Promise<boolean> {
  const row = await query<{ found: boolean }>(db).one(
    `select exists (select 1 from run where concurrency_key = ?
       and run_id = any ((select ancestors || run_id from run where run_id = ?)::text[])) as found`,
    [concurrencyKey, runId],
  );
  return row.found;
}

/**
 * Requests the cancel of all open runs with the key but the newest `kept`; the key must be locked. Maintenance delivers
 * it. The reason names the newest one.
 */
export async function cancelOldest(trx: Db, key: ConcurrencyKey, kept: number): Promise<void> {
  await query(trx).written(
    `with ranked as (
       select run_id, state, row_number() over newest as place, first_value(run_id) over newest as newest from run
       where project_id = :project_id and concurrency_key = :concurrency_key and finished_at is null
       window newest as (order by created_at desc, run_id desc)
     ), asked as (
       update run r set state = 'cancelling', cancel_requested_at = clock_timestamp(), cancel_delivered_at = null,
         cancel_reason = 'replaced by ' || k.newest, cancel_mode = 'graceful'
       from ranked k where r.run_id = k.run_id and k.place > :kept and r.state in ('queued', 'running', 'paused')
       returning r.run_id, r.cancel_reason
     )
     insert into event (run_id, type, data)
     select run_id, 'run.cancelling', jsonb_build_object('reason', cancel_reason, 'mode', 'graceful') from asked`,
    { ...key, kept },
  );
}

const head = `project_id, concurrency_key, concurrency_limit from run where state = 'queued' and ${isWaiting}`;
const inOrder = 'order by project_id, concurrency_key, created_at, run_id limit 1';

/**
 * Lists keys whose next run may be admitted. It reads that run of each key, and at most as many admitted runs as its
 * limit.
 */
export function listAdmissibleKeys(db: Db, limit: number): Promise<readonly ConcurrencyKey[]> {
  return query<ConcurrencyKey>(db).all(
    `with recursive next as (
       (select ${head} ${inOrder})
       union all
       select later.* from next cross join lateral (select ${head}
         and (project_id, concurrency_key) > (next.project_id, next.concurrency_key) ${inOrder}) later
     )
     select project_id, concurrency_key from next where concurrency_limit > (select count(*) from (
       select 1 from run where project_id = next.project_id and concurrency_key = next.concurrency_key and ${isAdmitted}
       limit next.concurrency_limit) under_way)
     limit ?`,
    [limit],
  );
}

/**
 * Admits the runs for which there is room; the key must be locked. A paused run keeps its position.
 * @param limit of runs examined; the next call takes the rest
 * @returns their ids
 */
export async function admitRuns(trx: Db, key: ConcurrencyKey, limit: number): Promise<string[]> {
  const rows = await query<{ run_id: string }>(trx).all(
    `with queue as (
       select run_id, concurrency_limit, row_number() over (order by created_at, run_id) as place from run
       where project_id = :project_id and concurrency_key = :concurrency_key and state = 'queued' and ${isWaiting}
       order by created_at, run_id limit :limit
     ), decided as (
       select run_id, bool_and(place + (select count(*) from run where project_id = :project_id
         and concurrency_key = :concurrency_key and ${isAdmitted}) <= concurrency_limit)
         over (order by place) as has_room from queue
     )
     update run r set admitted_at = clock_timestamp() from decided d
     where d.has_room and r.run_id = d.run_id and r.admitted_at is null and r.state = 'queued'
     returning r.run_id`,
    { ...key, limit },
  );
  return rows.map(({ run_id }) => run_id);
}
