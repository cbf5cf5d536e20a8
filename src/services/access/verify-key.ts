import { timingSafeEqual } from 'node:crypto';
import type { Scope } from '../../contracts/access.ts';
import { findLiveKey } from '../../db/access/api-key.ts';
import type { Db } from '../../db/connect.ts';
import { parseKey } from './key-text.ts';

/** Who sent a request: a key, what it may do and where. */
export interface KeyHolder {
  readonly key_id: string;
  readonly scopes: ReadonlySet<Scope>;
  /** At least one; the first is the default. */
  readonly projects: readonly string[];
}

/** Null when the key is malformed, unknown, expired or revoked. */
export async function verifyKey(db: Db, text: string): Promise<KeyHolder | null> {
  const parts = parseKey(text);
  if (parts === null) return null;
  const row = await findLiveKey(db, parts.key_id);
  if (row === null || !timingSafeEqual(row.secret_sha256, parts.secret_sha256)) return null;
  return { key_id: row.key_id, scopes: new Set(row.scopes), projects: row.projects };
}
