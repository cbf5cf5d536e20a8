/** Keys. Some changes follow the chain of creators: upwards for a new project, downwards for a revocation. */
import type { KeyScope } from '@capstan/core/contracts/access';
import type { CallOnBudget } from '@capstan/core/contracts/decision';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';

export interface KeyRow {
  readonly key_id: string;
  readonly name: string;
  readonly secret_sha256: Buffer;
  /** The secret before a rotation, while it still works. */
  readonly former_sha256: Buffer | null;
  readonly scopes: readonly KeyScope[];
  readonly projects: readonly string[];
  /** Null: made at a first start. */
  readonly created_by: string | null;
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
  readonly created_at: Date;
  /** Null: no limit of its own. */
  readonly requests_per_minute: number | null;
  /** Of direct calls to models; null: no limit. */
  readonly tokens_per_minute: number | null;
  /** Of its direct calls; null: that of the project. */
  readonly on_budget: CallOnBudget | null;
}

export type KeyRates = Pick<KeyRow, 'requests_per_minute' | 'tokens_per_minute'>;

type NewKey = Pick<KeyRow, 'key_id' | 'name' | 'secret_sha256' | 'scopes' | 'projects' | 'created_by'> &
  Partial<KeyRates & Pick<KeyRow, 'on_budget'>> & {
    readonly expires_at: string | null;
  };

const columns = `key_id, name, secret_sha256, scopes, projects, created_by, expires_at, revoked_at, created_at,
  requests_per_minute, tokens_per_minute, on_budget, case when former_until > now() then former_sha256 end as former_sha256`;

/** Rates of a key that another key inherits, or its own. */
export interface RatesInForce extends KeyRates {
  readonly key_id: string;
}

export interface LiveKeyRow extends KeyRow {
  readonly rates: readonly RatesInForce[];
}

/**
 * The column `rates`: those of the key and of the keys above it that have any, the key's own first.
 * @param table of the key in the query
 */
export function ratesInForce(table: string): string {
  return `(with recursive above as (
      select a.key_id, a.created_by, a.requests_per_minute, a.tokens_per_minute, 0 as height
      from api_key a where a.key_id = ${table}.key_id
      union all
      select p.key_id, p.created_by, p.requests_per_minute, p.tokens_per_minute, a.height + 1
      from above a join api_key p on p.key_id = a.created_by
    )
    select coalesce(json_agg(json_build_object('key_id', key_id, 'requests_per_minute', requests_per_minute,
      'tokens_per_minute', tokens_per_minute) order by height), '[]') from above
    where requests_per_minute is not null or tokens_per_minute is not null) as rates`;
}

/** The condition under which a key works. @param table its name or alias in the query */
export function isLiveKey(table: string): string {
  return `${table}.revoked_at is null and (${table}.expires_at is null or ${table}.expires_at > now())`;
}

export async function insertKey(db: Db, key: NewKey): Promise<void> {
  await db.raw(
    `insert into api_key (key_id, name, secret_sha256, scopes, projects, created_by, expires_at,
       requests_per_minute, tokens_per_minute, on_budget) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      ...[key.key_id, key.name, key.secret_sha256, [...key.scopes], [...key.projects]],
      ...[key.created_by, key.expires_at, key.requests_per_minute ?? null, key.tokens_per_minute ?? null],
      key.on_budget ?? null,
    ],
  );
}

/** @returns null if it does not exist, or is revoked or expired */
export async function findLiveKey(db: Db, keyId: string): Promise<LiveKeyRow | null> {
  const row = await query<LiveKeyRow>(db).first(
    `select ${columns}, ${ratesInForce('api_key')} from api_key where key_id = ? and ${isLiveKey('api_key')}`,
    [keyId],
  );
  return row ?? null;
}

/** Finds revoked keys too. @returns null if the key shares none of `projects` */
export async function findKeyOf(db: Db, keyId: string, projects: readonly string[]): Promise<KeyRow | null> {
  const row = await query<KeyRow>(db).first(
    `select ${columns} from api_key where key_id = ? and projects && ?::text[]`,
    [keyId, [...projects]],
  );
  return row ?? null;
}

/** The first few keys and people of a project with this name. */
export async function listIdsByName(db: Db, projectId: string, name: string): Promise<readonly string[]> {
  const rows = await query<Pick<KeyRow, 'key_id'>>(db).all(
    `select key_id from api_key where projects && ?::text[] and name = ? and revoked_at is null
     order by created_at desc, key_id desc limit 5`,
    [[projectId], name],
  );
  return rows.map(({ key_id }) => key_id);
}

/** Names of those of the ids that are keys or people of a project, by id. */
export async function namesOfKeys(
  db: Db,
  projectId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await query<Pick<KeyRow, 'key_id' | 'name'>>(db).all(
    'select key_id, name from api_key where key_id = any (?) and projects && ?::text[]',
    [[...ids], [projectId]],
  );
  return new Map(rows.map(({ key_id, name }) => [key_id, name]));
}

/** Newest first; keys that share at least one of `projects`. */
export function listKeys(
  db: Db,
  { projects, after, limit }: { projects: readonly string[]; after: string | null; limit: number },
): Promise<KeyRow[]> {
  return query<KeyRow>(db).all(
    `select ${columns} from api_key where projects && ?::text[]
       and (?::text is null or (created_at, key_id) < (select created_at, key_id from api_key where key_id = ?))
     order by created_at desc, key_id desc limit ?`,
    [[...projects], after, after, limit],
  );
}

type Revoked = Pick<KeyRow, 'key_id' | 'projects'>;

/** A second revocation changes nothing. @returns the keys that it revokes, including the key itself */
export function revokeWithKeysBelow(trx: Db, keyId: string): Promise<readonly Revoked[]> {
  return query<Revoked>(trx).all(
    `with recursive below as (
       select key_id from api_key where key_id = ?
       union all
       select k.key_id from api_key k join below b on k.created_by = b.key_id
     )
     update api_key k set revoked_at = now() from below b
     where k.key_id = b.key_id and k.revoked_at is null returning k.key_id, k.projects`,
    [keyId],
  );
}

/** @returns the keys that now hold the project: the key, its creator, and so on */
export async function addProjectUpwards(
  trx: Db,
  keyId: string,
  projectId: string,
): Promise<readonly string[]> {
  const rows = await query<{ key_id: string }>(trx).all(
    `with recursive above as (
       select key_id, created_by from api_key where key_id = ?
       union all
       select k.key_id, k.created_by from api_key k join above a on k.key_id = a.created_by
     )
     update api_key k set projects = array_append(projects, ?) from above a
     where k.key_id = a.key_id returning k.key_id`,
    [keyId, projectId],
  );
  return rows.map(({ key_id }) => key_id);
}

/** @returns false if the key is neither `from` nor below it, or no longer works; nothing was written */
export function replaceSecret(
  trx: Db,
  { keyId, from }: { readonly keyId: string; readonly from: string },
  { secret_sha256, overlapS }: { readonly secret_sha256: Buffer; readonly overlapS: number },
): Promise<boolean> {
  return query(trx).wrote(
    `with recursive above as (
       select key_id, created_by from api_key where key_id = ?
       union all
       select k.key_id, k.created_by from api_key k join above a on k.key_id = a.created_by
     )
     update api_key set former_sha256 = secret_sha256, former_until = now() + ?::int * interval '1 second',
       secret_sha256 = ?
     where key_id = ? and revoked_at is null and (expires_at is null or expires_at > now())
       and exists (select 1 from above where key_id = ?)`,
    [keyId, overlapS, secret_sha256, keyId, from],
  );
}

// Webhooks, hooks and schedules that a key has set up belong to the project, and do not end with the key.

interface GoingOn {
  readonly webhooks: readonly {
    readonly webhook_id: string;
    readonly project_id: string;
    readonly url: string;
  }[];
  readonly hooks: readonly {
    readonly hook_id: string;
    readonly project_id: string;
    readonly name: string;
  }[];
  readonly schedules: readonly {
    readonly schedule_id: string;
    readonly project_id: string;
    readonly name: string;
  }[];
}

/** Lists those set up by the key and by the keys below it, in these projects; the first `most` of each. */
export async function listGoingOn(
  db: Db,
  keyId: string,
  { projects, most }: { readonly projects: readonly string[]; readonly most: number },
): Promise<GoingOn> {
  const select = <Row>(columns: string, from: string): Promise<Row[]> =>
    query<Row>(db).all(
      `with recursive below as (
         select key_id from api_key where key_id = :keyId
         union all
         select k.key_id from api_key k join below b on k.created_by = b.key_id
       )
       select ${columns} from ${from} and project_id = any (:projects)
         and created_by in (select key_id from below) order by 1 limit :most`,
      { keyId, projects: [...projects], most },
    );
  return {
    webhooks: await select('webhook_id, project_id, url', 'webhook where true'),
    hooks: await select('hook_id, project_id, name', 'hook where true'),
    schedules: await select('schedule_id, project_id, name', 'schedule where deleted_at is null'),
  };
}
