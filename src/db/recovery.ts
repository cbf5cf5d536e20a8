/**
 * A restored database: its open work, its keys compared with known changes of keys, and its transaction numbers.
 *
 * Events and instances carry the number of the transaction that wrote them, which orders logs and drives the polls for
 * changes. A restored dump brings the numbers of another cluster, whose counter may have been ahead of this one's: its
 * events would lie in the future, unread, and new ones before them. So the first process that starts on another cluster
 * lowers them below every number of this one, in their order. Logs and the numbers of their events do not change.
 */
import type { Db } from './connect.ts';
import { query } from './statements.ts';

/** The first number that transactions of this cluster have not reached. */
const ahead = 'pg_snapshot_xmax(pg_current_snapshot())';

/**
 * Whether this cluster wrote the row of `cluster`. The row names the transaction that wrote it, and so does its tuple:
 * a copy of rows is written by another transaction. A file copy of a cluster keeps both, and its counter.
 */
async function isKnown(db: Db): Promise<boolean> {
  const row = await query<{ is_own: boolean }>(db).first(
    `select written_by::text::numeric % 4294967296 = xmin::text::numeric as is_own from cluster`,
  );
  return row?.is_own === true;
}

/** Counts of rows whose numbers were lowered below those of this cluster. */
export interface Adoption {
  readonly events: number;
  readonly instances: number;
}

/** Events of an earlier restore stay before all others. @returns how many it lowered */
async function lowerEvents(trx: Db): Promise<number> {
  await trx.raw('lock table event in share row exclusive mode');
  const { rows } = await trx.raw<{ rows: [{ is_ahead: boolean }] }>(
    `select exists (select 1 from event where xid >= ${ahead}) as is_ahead`,
  );
  if (!rows[0].is_ahead) return 0;
  return query(trx).written(`with lowered as (
       select run_id, max(id) as last from event where xid = '0' group by run_id
     ), ranked as (
       select e.run_id, e.xid, e.id,
         coalesce(l.last, 0) + row_number() over (partition by e.run_id order by e.xid, e.id) as place
       from event e left join lowered l using (run_id) where e.xid > '0'
     )
     update event e set xid = '0', id = r.place
     from ranked r where e.run_id = r.run_id and e.xid = r.xid and e.id = r.id`);
}

/** @returns null, without changes, on the known cluster */
export async function adoptCluster(db: Db): Promise<Adoption | null> {
  if (await isKnown(db)) return null;
  return db.transaction(async (trx) => {
    const events = await lowerEvents(trx);
    // Their trigger sets this transaction's number, so that every router reads them once more.
    const instances = await query(trx).written(
      `update instance set changed_xid = changed_xid where changed_xid >= ${ahead}`,
    );
    await trx.raw(
      'insert into cluster (is_only) values (true) on conflict (is_only) do update set written_by = excluded.written_by',
    );
    return { events, instances };
  });
}

// Open work in a restored database.

export interface RestoredState {
  /** The last time that it recorded; null: it is empty. */
  readonly last_at: Date | null;
  readonly open_runs: number;
  /** Starts that Temporal had not accepted yet. */
  readonly undelivered_starts: number;
  /** Calls in flight at the time of the backup. */
  readonly open_calls: number;
  readonly open_reviews: number;
  readonly pending_webhooks: number;
}

export function readRestoredState(db: Db): Promise<RestoredState> {
  return query<RestoredState>(
    db,
  ).one(`select greatest((select max(created_at) from (select created_at from run order by run_id desc limit 100) r),
         (select greatest(max(started_at), max(finished_at))
           from (select started_at, finished_at from attempt order by attempt_id desc limit 100) a)) as last_at,
       (select count(*)::int from run where finished_at is null) as open_runs,
       (select count(*)::int from run where finished_at is null and start_delivered_at is null) as undelivered_starts,
       (select count(*)::int from attempt where state in ('reserved', 'dispatched')) as open_calls,
       (select count(*)::int from review where state in ('open', 'claimed')) as open_reviews,
       (select count(*)::int from webhook_delivery where state = 'pending') as pending_webhooks`);
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
  /** Whether Temporal had accepted its start. */
  readonly is_delivered: boolean;
}

/** Lists runs that have not ended, by id, after `after`. */
export function listOpenRuns(db: Db, after: string, limit: number): Promise<readonly OpenRun[]> {
  return query<OpenRun>(db).all(
    `select run_id, pipeline, start_delivered_at is not null as is_delivered from run
     where finished_at is null and run_id > ? order by run_id limit ?`,
    [after, limit],
  );
}

/** Calls that were in flight: their outcome is unknown. */
export async function listInterruptedCalls(db: Db, limit: number): Promise<readonly InterruptedCall[]> {
  return db('attempt')
    .whereIn('state', ['reserved', 'dispatched'])
    .orderBy('attempt_id')
    .limit(limit)
    .select('attempt_id', 'run_id', 'step_id', 'item', 'capability', 'endpoint');
}

export interface KeyAct {
  readonly entry_id: string;
  readonly action: 'key.created' | 'key.revoked' | 'key.rotated';
  /** Id of the key. */
  readonly subject: string;
}

/** Ids of keys with changes that the database does not know. */
export interface LostKeyActs {
  /** Created after the backup, and not revoked since: they no longer work. */
  readonly made: readonly string[];
  /** Revoked after the backup: they work again. */
  readonly revoked: readonly string[];
  /** Rotated after the backup: the former secret works again, the new one does not. */
  readonly rotated: readonly string[];
}

/**
 * Revocations are permanent and ids are unique, so the rows show which are missing; rotations are found in the audit
 * log.
 */
export function compareKeys(db: Db, acts: readonly KeyAct[]): Promise<LostKeyActs> {
  return query<LostKeyActs>(db).one(
    `with act as (
       select * from jsonb_to_recordset(?::jsonb) a (entry_id text, action text, subject text)
     ), revoked as (select distinct subject from act where action = 'key.revoked')
     select array(select distinct a.subject from act a where a.action = 'key.created'
         and a.subject not in (select subject from revoked)
         and not exists (select from api_key k where k.key_id = a.subject) order by 1) as made,
       array(select k.key_id from revoked r join api_key k on k.key_id = r.subject
         where k.revoked_at is null order by 1) as revoked,
       array(select distinct k.key_id from act a join api_key k on k.key_id = a.subject
         where a.action = 'key.rotated' and k.revoked_at is null and a.subject not in (select subject from revoked)
           and not exists (select from audit u where u.action = a.action and u.subject = a.subject
             and u.entry::text = a.entry_id) order by 1) as rotated`,
    [JSON.stringify(acts)],
  );
}
