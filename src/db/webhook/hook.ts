/** Hooks, and the log of their deliveries: 30 days, and the thousand newest of each hook. */
import type { HookDelivery, HookOutcome, HookSettings } from '@capstan/core/contracts/hook';
import type { Json } from '@capstan/core/contracts/primitives';
import type { Db } from '../connect.ts';
import { purgeOld, query, toJson } from '../statements.ts';

export interface HookRow {
  readonly hook_id: string;
  readonly project_id: string;
  readonly name: string;
  readonly body: HookSettings;
  readonly secret: string;
  /** Null also when its time is over. */
  readonly former_secret: string | null;
  readonly former_until: Date | null;
  readonly refusals: number;
  readonly refused_at: Date | null;
  readonly refuse_reason: string | null;
  readonly created_by: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

const columns = `hook_id, project_id, name, body, secret, refusals, refused_at, refuse_reason, created_by, created_at,
  updated_at, case when former_until > clock_timestamp() then former_secret end as former_secret,
  case when former_until > clock_timestamp() then former_until end as former_until`;

export interface HookKey {
  readonly project_id: string;
  readonly name: string;
}

/** @returns undefined if the project has one of that name, or as many as it may have */
export function insertHook(
  trx: Db,
  hook: HookKey & Pick<HookRow, 'hook_id' | 'body' | 'secret' | 'created_by'>,
  most: number,
): Promise<HookRow | undefined> {
  return query<HookRow>(trx).first(
    `insert into hook (hook_id, project_id, name, body, secret, created_by)
     select :hook_id, :project_id, :name, :body, :secret, :created_by
     where (select count(*) from hook where project_id = :project_id) < :most
     on conflict (project_id, name) do nothing returning ${columns}`,
    { ...hook, body: toJson(hook.body), most },
  );
}

export function findHook(db: Db, { project_id, name }: HookKey): Promise<HookRow | undefined> {
  return query<HookRow>(db).first(`select ${columns} from hook where project_id = ? and name = ?`, [
    project_id,
    name,
  ]);
}

/** By name. */
export function listHooks(
  db: Db,
  projectId: string,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<readonly HookRow[]> {
  return query<HookRow>(db).all(
    `select ${columns} from hook where project_id = ? and name > coalesce(?, '') order by name limit ?`,
    [projectId, after, limit],
  );
}

export function updateHook(
  trx: Db,
  { project_id, name }: HookKey,
  body: HookSettings,
): Promise<HookRow | undefined> {
  return query<HookRow>(trx).first(
    `update hook set body = ?, updated_at = clock_timestamp() where project_id = ? and name = ? returning ${columns}`,
    [toJson(body), project_id, name],
  );
}

/** The present secret becomes the former one. */
export function replaceHookSecret(
  trx: Db,
  { project_id, name }: HookKey,
  { secret, overlapS }: { readonly secret: string; readonly overlapS: number },
): Promise<HookRow | undefined> {
  return query<HookRow>(trx).first(
    `update hook set former_secret = secret, former_until = clock_timestamp() + ?::int * interval '1 second',
       secret = ?, updated_at = clock_timestamp()
     where project_id = ? and name = ? returning ${columns}`,
    [overlapS, secret, project_id, name],
  );
}

/** With its log. @returns its id */
export async function deleteHook(trx: Db, { project_id, name }: HookKey): Promise<string | undefined> {
  const row = await query<{ hook_id: string }>(trx).first(
    'delete from hook where project_id = ? and name = ? returning hook_id',
    [project_id, name],
  );
  return row?.hook_id;
}

/** Counts a request that proved no sender. */
export async function noteUnsigned(db: Db, hookId: string, reason: string): Promise<void> {
  await db.raw(
    'update hook set refusals = refusals + 1, refused_at = clock_timestamp(), refuse_reason = ? where hook_id = ?',
    [reason, hookId],
  );
}

// The log.

export interface ReceivedRow {
  readonly delivery_id: string;
  readonly hook_id: string;
  readonly outcome: HookOutcome;
  readonly reason: string | null;
  readonly key: string | null;
  readonly run_id: string | null;
  readonly replay_of: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Json;
  readonly bytes: number;
  readonly created_at: Date;
}

/** Does nothing if the hook was deleted meanwhile. */
export async function insertReceived(db: Db, row: Omit<ReceivedRow, 'created_at'>): Promise<void> {
  await db.raw(
    `insert into hook_delivery (delivery_id, hook_id, outcome, reason, key, run_id, replay_of, headers, body, bytes)
     select :delivery_id, hook_id, :outcome, :reason, :key, :run_id, :replay_of, :headers, :body, :bytes
     from hook where hook_id = :hook_id`,
    { ...row, headers: toJson(row.headers), body: row.body === null ? null : toJson(row.body) },
  );
}

/** Newest first, without headers and bodies. @param after the last delivery of the page before */
export function listReceived(
  db: Db,
  hookId: string,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<readonly Omit<ReceivedRow, 'headers' | 'body'>[]> {
  return query<Omit<ReceivedRow, 'headers' | 'body'>>(db).all(
    `select delivery_id, hook_id, outcome, reason, key, run_id, replay_of, bytes, created_at from hook_delivery
     where hook_id = :hookId and (:after::text is null
       or (created_at, delivery_id) < (select created_at, delivery_id from hook_delivery where delivery_id = :after))
     order by created_at desc, delivery_id desc limit :limit`,
    { hookId, after, limit },
  );
}

export function findReceived(
  db: Db,
  hookId: string,
  deliveryId: HookDelivery['delivery_id'],
): Promise<ReceivedRow | undefined> {
  return query<ReceivedRow>(db).first('select * from hook_delivery where hook_id = ? and delivery_id = ?', [
    hookId,
    deliveryId,
  ]);
}

const mostOfHook = 1_000;

/** Deletes deliveries after 30 days, and all but the newest of each hook. @returns how many */
export async function purgeReceived(db: Db): Promise<number> {
  const old = await purgeOld(db, { table: 'hook_delivery', hours: 720 });
  const many = await query(db).written(
    `delete from hook_delivery d using hook h cross join lateral (
       select created_at, delivery_id from hook_delivery where hook_id = h.hook_id
       order by created_at desc, delivery_id desc offset ? limit 1) oldest
     where d.hook_id = h.hook_id and (d.created_at, d.delivery_id) <= (oldest.created_at, oldest.delivery_id)`,
    [mostOfHook],
  );
  return old + many;
}
