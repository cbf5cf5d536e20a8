import { timingSafeEqual } from 'node:crypto';
import { findLiveKey, type KeyRow } from '../../db/access/api-key.ts';
import type { Db } from '../../db/connect.ts';
import { parseKey } from './key-text.ts';
import type { KeyHolder } from './rights.ts';

function isPresent({ secret_sha256 }: KeyRow, digest: Buffer): boolean {
  return timingSafeEqual(secret_sha256, digest);
}

function isFormer({ former_sha256 }: KeyRow, digest: Buffer): boolean {
  return former_sha256 !== null && timingSafeEqual(former_sha256, digest);
}

/** Null when the key is malformed, unknown, expired or revoked. */
export async function verifyKey(db: Db, text: string): Promise<KeyHolder | null> {
  const parts = parseKey(text);
  if (parts === null) return null;
  const row = await findLiveKey(db, parts.key_id);
  if (row === null) return null;
  const holder = { key_id: row.key_id, scopes: new Set(row.scopes), projects: row.projects };
  if (isPresent(row, parts.secret_sha256)) return holder;
  return isFormer(row, parts.secret_sha256) ? { ...holder, shown: 'former secret' } : null;
}
