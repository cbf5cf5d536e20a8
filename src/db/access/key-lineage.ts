/** Changes that follow who made a key: upwards for a new project, downwards for a revocation. */
import type { Db } from '../connect.ts';
import type { KeyRow } from './api-key.ts';

const changeLock = 7_236_150_446;

/**
 * Keys change one at a time, until the transaction ends: otherwise a key that is made while the one that makes it is
 * revoked would stay.
 */
export async function lockKeys(trx: Db): Promise<void> {
  await trx.raw('select pg_advisory_xact_lock(?)', [changeLock]);
}

type Revoked = Pick<KeyRow, 'key_id' | 'projects'>;

/** Revoking again changes nothing. @returns the keys that are revoked by it, the key itself among them */
export async function revokeWithKeysBelow(trx: Db, keyId: string): Promise<readonly Revoked[]> {
  const { rows } = await trx.raw<{ rows: Revoked[] }>(
    `with recursive below as (
       select key_id from api_key where key_id = ?
       union all
       select k.key_id from api_key k join below b on k.created_by = b.key_id
     )
     update api_key k set revoked_at = now() from below b
     where k.key_id = b.key_id and k.revoked_at is null returning k.key_id, k.projects`,
    [keyId],
  );
  return rows;
}

/** @returns the keys that hold it now: the key, the one that made it, and so on */
export async function addProjectUpwards(
  trx: Db,
  keyId: string,
  projectId: string,
): Promise<readonly string[]> {
  const { rows } = await trx.raw<{ rows: { key_id: string }[] }>(
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

/** False when the key is neither `from` nor below it, or does not work any more; nothing was written. */
export async function replaceSecret(
  trx: Db,
  { keyId, from }: { readonly keyId: string; readonly from: string },
  { secret_sha256, overlapS }: { readonly secret_sha256: Buffer; readonly overlapS: number },
): Promise<boolean> {
  const { rowCount } = await trx.raw<{ rowCount: number }>(
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
  return rowCount > 0;
}
