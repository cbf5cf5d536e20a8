import { timingSafeEqual } from 'node:crypto';
import { findLiveKey, type KeyRow } from '../../db/access/api-key.ts';
import type { Db } from '../../db/connect.ts';
import { parseKey } from './key-text.ts';
import type { KeyHolder } from './rights.ts';

function isSecretOf({ secret_sha256, former_sha256 }: KeyRow, digest: Buffer): boolean {
  const isCurrent = timingSafeEqual(secret_sha256, digest);
  return isCurrent || (former_sha256 !== null && timingSafeEqual(former_sha256, digest));
}

/** Null when the key is malformed, unknown, expired or revoked. */
export async function verifyKey(db: Db, text: string): Promise<KeyHolder | null> {
  const parts = parseKey(text);
  if (parts === null) return null;
  const row = await findLiveKey(db, parts.key_id);
  if (row === null || !isSecretOf(row, parts.secret_sha256)) return null;
  return { key_id: row.key_id, scopes: new Set(row.scopes), projects: row.projects };
}
