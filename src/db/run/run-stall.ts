/**
 * Open runs whose workflow cannot make progress: those to ask Temporal about, and those that need a payload key. A run
 * needs the key by which its start is encrypted, until it ends.
 */
import type { StalledRun } from '@capstan/core/contracts/run';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';

export interface IdleRunRow {
  readonly run_id: string;
  readonly pipeline: string;
  readonly stalled: StalledRun | null;
  /** Temporal has accepted its cancel. */
  readonly is_cancelled: boolean;
}

const idleColumns = `r.run_id, r.pipeline, r.stalled, r.cancel_delivered_at is not null as is_cancelled from run r
   where r.start_delivered_at < clock_timestamp() - interval '5 seconds' and r.finished_at is null`;

const hasKey = `r.stalled ->> 'missing_key' is null`;

/**
 * Runs that are known to stall for another reason than their key, and those that do not end although Temporal has
 * accepted their cancel.
 */
export function listSuspiciousRuns(db: Db, limit: number): Promise<readonly IdleRunRow[]> {
  return query<IdleRunRow>(db).all(
    `select ${idleColumns} and (r.stalled is not null and ${hasKey}
       or r.cancel_delivered_at < clock_timestamp() - interval '5 seconds')
     order by r.run_id limit ?`,
    [limit],
  );
}

/** Open runs with their key and without a call in flight, by id, after `after`. */
export function listIdleRuns(db: Db, after: string, limit: number): Promise<readonly IdleRunRow[]> {
  return query<IdleRunRow>(db).all(
    `select ${idleColumns} and ${hasKey} and r.run_id > ? and not exists (
       select from attempt a where a.run_id = r.run_id and a.state in ('reserved', 'dispatched') and a.answers_by is null)
     order by r.run_id limit ?`,
    [after, limit],
  );
}

/** @param stalled null: its workflow makes progress. A run whose key is missing keeps that reason */
export async function writeStalled(db: Db, runId: string, stalled: StalledRun | null): Promise<void> {
  await db.raw(`update run r set stalled = ? where run_id = ? and finished_at is null and ${hasKey}`, [
    stalled === null ? null : JSON.stringify(stalled),
    runId,
  ]);
}

const needsKey = `payload_key <> '' and finished_at is null`;

/** The keys that open runs need. Cheap: a probe of an index for each key. */
export async function listNeededKeys(db: Db): Promise<readonly string[]> {
  const rows = await query<{ id: string }>(db).all(
    `with recursive needed (id) as (
       select min(payload_key) from run where ${needsKey}
       union all
       select (select min(payload_key) from run where ${needsKey} and payload_key > id) from needed where id is not null
     )
     select id from needed where id is not null`,
  );
  return rows.map(({ id }) => id);
}

/** The most runs that one statement changes; others follow. A run that is changed at this moment follows too. */
const most = 10_000;

/** Marks the runs that need the key. @returns how many were not marked with this reason */
export function markMissingKey(db: Db, stalled: Required<StalledRun>): Promise<number> {
  const { missing_key, message, since } = stalled;
  return query(db).written(
    `with lacking as (
       select run_id from run
       where ${needsKey} and payload_key = :missing_key
         and (stalled ->> 'missing_key' is null or stalled ->> 'message' <> :message)
       limit :most for no key update skip locked
     )
     update run r set stalled = jsonb_build_object('message', :message::text,
       'since', coalesce(stalled ->> 'since', :since), 'missing_key', payload_key)
     from lacking where r.run_id = lacking.run_id`,
    { missing_key, message, since, most },
  );
}

/** Clears the mark of runs that need none but these keys. @returns how many */
export function clearMissingKeys(db: Db, keys: readonly string[]): Promise<number> {
  return query(db).written(
    `with marked as (
       select run_id from run
       where stalled ->> 'missing_key' is not null and finished_at is null
         and (payload_key = '' or payload_key = any (:keys))
       limit :most for no key update skip locked
     )
     update run r set stalled = null from marked where r.run_id = marked.run_id`,
    { keys: [...keys], most },
  );
}
