import type { ServerCtx } from '../../context.ts';
import { findSessionHolder } from '../../db/access/session.ts';
import type { Db } from '../../db/connect.ts';
import { forgetText, type KeyHolder, placeOf } from '../../parts/access/verified-keys.ts';
import { toHolder } from './caller.ts';
import { digestOf, isSessionText, verifyKey } from './key-text.ts';

export type KeyCtx = Pick<ServerCtx, 'db' | 'verifiedKeys'>;

async function verify(db: Db, text: string): Promise<KeyHolder | null> {
  if (!isSessionText(text)) return verifyKey(db, text);
  const row = await findSessionHolder(db, digestOf(text));
  return row === null ? null : toHolder(row);
}

/** By a key or the secret of a session. Null when it is malformed, unknown, expired or revoked. */
export function identify(ctx: KeyCtx, text: string): KeyHolder | Promise<KeyHolder | null> {
  return ctx.verifiedKeys.get(placeOf(text)) ?? identifyUnknown(ctx, text);
}

async function identifyUnknown({ db, verifiedKeys }: KeyCtx, text: string): Promise<KeyHolder | null> {
  const holder = await verify(db, text);
  if (holder !== null && verifiedKeys.ttl > 0) verifiedKeys.set(placeOf(text), holder);
  return holder;
}

/** Queries the database, past the cache, so it notices a revocation first. */
export async function isStillValid({ db, verifiedKeys }: KeyCtx, text: string): Promise<boolean> {
  const isValid = (await verify(db, text)) !== null;
  if (!isValid) forgetText(verifiedKeys, text);
  return isValid;
}
