/**
 * Finds the holder of a key or of a session's secret. A verified one is cached for 5 s, so a revocation reaches every
 * process within that time, and the process that made it at once.
 */
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { findSessionHolder } from '../../db/access/session.ts';
import type { Db } from '../../db/connect.ts';
import type { ServerCtx } from '../../context.ts';
import { type KeyHolder, toHolder } from './caller.ts';
import { digestOf, isSessionText, verifyKey } from './key-text.ts';

/** Holders by the digest of their key or secret. */
export type VerifiedKeys = LRUCache<string, KeyHolder>;

export type KeyCtx = Pick<ServerCtx, 'db' | 'verifiedKeys'>;

/** @param trustMs how long a verified key is used without a query; 0 queries always */
export function createVerifiedKeys(trustMs = 5_000): VerifiedKeys {
  return new LRUCache({ max: 10_000, ttl: trustMs, ttlResolution: 0 });
}

function placeOf(text: string): string {
  return hash('sha256', text, 'base64');
}

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

export function forgetText(verifiedKeys: VerifiedKeys, text: string): void {
  verifiedKeys.delete(placeOf(text));
}

export function forgetKeys(verifiedKeys: VerifiedKeys, keyIds: readonly string[]): void {
  for (const [place, { key_id }] of verifiedKeys.entries())
    if (keyIds.includes(key_id)) verifiedKeys.delete(place);
}
