import type { KeyScope } from '../../contracts/access.ts';
import type { Db } from '../connect.ts';

export interface KeyRow {
  readonly key_id: string;
  readonly name: string;
  readonly secret_sha256: Buffer;
  /** The secret before a rotation, where it still works. */
  readonly former_sha256: Buffer | null;
  readonly scopes: readonly KeyScope[];
  readonly projects: readonly string[];
  /** Null: a first start. */
  readonly created_by: string | null;
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
  readonly created_at: Date;
}

export type NewKey = Pick<
  KeyRow,
  'key_id' | 'name' | 'secret_sha256' | 'scopes' | 'projects' | 'created_by'
> & {
  readonly expires_at: string | null;
};

const columns = `key_id, name, secret_sha256, scopes, projects, created_by, expires_at, revoked_at, created_at,
  case when former_until > now() then former_sha256 end as former_sha256`;

/** The condition by which a key works. @param table its name or alias in the query */
export function isLiveKey(table: string): string {
  return `${table}.revoked_at is null and (${table}.expires_at is null or ${table}.expires_at > now())`;
}

export async function insertKey(db: Db, key: NewKey): Promise<void> {
  await db.raw(
    `insert into api_key (key_id, name, secret_sha256, scopes, projects, created_by, expires_at)
     values (?, ?, ?, ?, ?, ?, ?)`,
    [
      ...[key.key_id, key.name, key.secret_sha256, [...key.scopes], [...key.projects]],
      ...[key.created_by, key.expires_at],
    ],
  );
}

/** Null when there is none, or it is revoked or expired. */
export async function findLiveKey(db: Db, keyId: string): Promise<KeyRow | null> {
  const { rows } = await db.raw<{ rows: KeyRow[] }>(
    `select ${columns} from api_key where key_id = ? and ${isLiveKey('api_key')}`,
    [keyId],
  );
  return rows[0] ?? null;
}

/** Also when it is revoked. Null when it shares none of `projects`. */
export async function findKeyOf(db: Db, keyId: string, projects: readonly string[]): Promise<KeyRow | null> {
  const { rows } = await db.raw<{ rows: KeyRow[] }>(
    `select ${columns} from api_key where key_id = ? and projects && ?::text[]`,
    [keyId, [...projects]],
  );
  return rows[0] ?? null;
}

/** Newest first; keys that share at least one of `projects`. */
export async function listKeys(
  db: Db,
  { projects, after, limit }: { projects: readonly string[]; after: string | null; limit: number },
): Promise<KeyRow[]> {
  const { rows } = await db.raw<{ rows: KeyRow[] }>(
    `select ${columns} from api_key where projects && ?::text[]
       and (?::text is null or (created_at, key_id) < (select created_at, key_id from api_key where key_id = ?))
     order by created_at desc, key_id desc limit ?`,
    [[...projects], after, after, limit],
  );
  return rows;
}
