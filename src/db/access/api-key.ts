import type { Scope } from '../../contracts/access.ts';
import type { Db } from '../connect.ts';

export interface KeyRow {
  readonly key_id: string;
  readonly name: string;
  readonly secret_sha256: Buffer;
  readonly scopes: readonly Scope[];
  readonly projects: readonly string[];
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
  readonly created_at: Date;
}

export type NewKey = Pick<KeyRow, 'key_id' | 'name' | 'secret_sha256' | 'scopes' | 'projects'> & {
  readonly expires_at: string | null;
};

export async function insertKey(db: Db, key: NewKey): Promise<void> {
  await db.raw(
    `insert into api_key (key_id, name, secret_sha256, scopes, projects, expires_at) values (?, ?, ?, ?, ?, ?)`,
    [key.key_id, key.name, key.secret_sha256, [...key.scopes], [...key.projects], key.expires_at],
  );
}

/** Null when there is none, or it is revoked or expired. */
export async function findLiveKey(db: Db, keyId: string): Promise<KeyRow | null> {
  const { rows } = await db.raw<{ rows: KeyRow[] }>(
    `select * from api_key where key_id = ? and revoked_at is null and (expires_at is null or expires_at > now())`,
    [keyId],
  );
  return rows[0] ?? null;
}

/** Newest first; only keys whose projects all lie within `projects`. */
export async function listKeys(
  db: Db,
  { projects, after, limit }: { projects: readonly string[]; after: string | null; limit: number },
): Promise<KeyRow[]> {
  const { rows } = await db.raw<{ rows: KeyRow[] }>(
    `select * from api_key where projects <@ ?::text[]
       and (?::text is null or (created_at, key_id) < (select created_at, key_id from api_key where key_id = ?))
     order by created_at desc, key_id desc limit ?`,
    [[...projects], after, after, limit],
  );
  return rows;
}

/** Revoking again changes nothing. False when no such key lies within `projects`. */
export async function revokeKey(db: Db, keyId: string, projects: readonly string[]): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update api_key set revoked_at = coalesce(revoked_at, now()) where key_id = ? and projects <@ ?::text[]`,
    [keyId, [...projects]],
  );
  return rowCount > 0;
}

export async function addProjectToKey(db: Db, keyId: string, projectId: string): Promise<void> {
  await db.raw('update api_key set projects = array_append(projects, ?) where key_id = ?', [
    projectId,
    keyId,
  ]);
}
