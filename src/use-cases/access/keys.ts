/**
 * Keys, and the keys that they make. A key acts only within the projects it is bound to, `admin` keys included.
 *
 * K1: a key has no project or scope that its parent key lacks, and does not outlive it. K2: it is revoked with its
 * parent. K3: every admin key that shares a project with it lists and revokes it; an operator's key only another
 * operator's. K4: its secret is renewed only by itself and by the keys above it, because a renewal reveals the new
 * secret. K5: it draws on the rates of the keys above it as well (key-rates.ts).
 */

import { Key, type KeyCreated, type KeyRequest, type KeyRevoked } from '@capstan/core/contracts/access';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { toWire } from '@capstan/core/contracts/to-wire';
import { AppError, refuseField } from '@capstan/core/errors/app-error';
import type { Config } from '../../config.ts';
import type { Ctx } from '../../context.ts';
import {
  findKeyOf,
  findLiveKey,
  insertKey,
  type KeyRates,
  type KeyRow,
  type LiveKeyRow,
  listGoingOn,
  listKeys,
  replaceSecret,
  revokeWithKeysBelow,
} from '../../db/access/api-key.ts';
import { insertAudits } from '../../db/access/audit.ts';
import { endSessionsOf, findHolder } from '../../db/access/session.ts';
import type { Db } from '../../db/connect.ts';
import { listErasing } from '../../db/deletion/erasure.ts';
import { takeLock } from '../../db/locks.ts';
import { forgetKeys } from '../../parts/access/verified-keys.ts';
import { decodeCursor, type PageRequest, toPage } from '../cursor.ts';
import {
  type Caller,
  isOperator,
  isPersonId,
  requireProjects,
  requireScopes,
  selectProject,
  toHolder,
} from './caller.ts';
import type { KeyCtx } from './identification.ts';
import { generateKey, generateSecret } from './key-text.ts';

interface ModeCtx {
  readonly config: Pick<Config, 'CAPSTAN_MODE'>;
}

/** The environment in new keys. */
function environmentOf({ config }: ModeCtx): 'dev' | 'live' {
  return config.CAPSTAN_MODE === 'production' ? 'live' : 'dev';
}

/** Locks the keys, as the start of an erasure does. @throws AppError `state_conflict` */
async function refuseErasing(trx: Db, projects: readonly string[]): Promise<void> {
  const erasing = await listErasing(trx, projects);
  if (erasing.length > 0)
    throw new AppError('state_conflict', `${erasing.join(', ')}: the project is being erased`);
}

/** @param held the caller's projects */
function toKey(row: KeyRow, held: readonly string[]): Key {
  return toWire(Key, { ...row, projects: row.projects.filter((project) => held.includes(project)) });
}

function endOf(wanted: string | undefined, parent: KeyRow): string | null {
  const latest = parent.expires_at;
  if (wanted === undefined) return latest?.toISOString() ?? null;
  if (latest === null || Date.parse(wanted) <= latest.getTime()) return wanted;
  const ends = `${parent.key_id} ends at ${latest.toISOString()}`;
  throw refuseField('/expires_at', `${wanted} is later than the expiry of the calling key, ${ends}`);
}

/** The default is the creating key's rate, which is also the highest. */
function rateOf(rate: keyof KeyRates, { [rate]: wanted }: KeyRequest, parent: KeyRow): number | null {
  const most = parent[rate];
  if (wanted === undefined || most === null || wanted <= most) return wanted ?? most;
  throw refuseField(`/${rate}`, `${wanted} is above the rate of the calling key, ${most}`);
}

/** Every request of a key draws on the rates of all keys above it. */
const mostRatesAbove = 16;

/** @throws AppError `request_invalid` */
function requireRoomBelow({ key_id, rates }: LiveKeyRow): void {
  if (rates.length < mostRatesAbove) return;
  const message = `${key_id} is below ${rates.length - 1} keys with rates; a key with ${mostRatesAbove} at or above it makes no keys`;
  throw new AppError('request_invalid', message);
}

/**
 * Reads the person's rights again: those of the request may be older than a change of groups, which takes the same
 * lock.
 */
async function requireHeldNow(
  trx: Db,
  { key_id, project_id }: Caller,
  { projects, scopes }: KeyRequest,
): Promise<void> {
  const row = await findHolder(trx, key_id);
  const holder = row === null ? null : toHolder(row);
  if (holder === null) throw new AppError('forbidden', `${key_id} has no project any more`);
  const held = selectProject(holder, project_id);
  requireProjects(held, projects);
  requireScopes(held, ['admin', ...scopes]);
}

/**
 * @throws AppError `forbidden` for more than the caller holds, `request_invalid` for an expiry after the caller's own
 */
export async function createKey(
  ctx: Pick<Ctx, 'db'> & ModeCtx,
  caller: Caller,
  request: KeyRequest,
): Promise<KeyCreated> {
  const { key, ...parts } = generateKey(environmentOf(ctx));
  const { name, on_budget } = request;
  const projects = [...new Set(request.projects)];
  const scopes = [...new Set(request.scopes)];
  await ctx.db.transaction(async (trx) => {
    await takeLock(trx, 'keys');
    const parent = await findLiveKey(trx, caller.key_id);
    if (parent === null) throw new AppError('unauthenticated', `${caller.key_id} was revoked or has expired`);
    requireRoomBelow(parent);
    await requireHeldNow(trx, caller, request);
    await refuseErasing(trx, projects);
    const expires_at = endOf(request.expires_at, parent);
    const rates = {
      requests_per_minute: rateOf('requests_per_minute', request, parent),
      tokens_per_minute: rateOf('tokens_per_minute', request, parent),
    };
    const own = { name, scopes, projects, created_by: parent.key_id, expires_at, on_budget };
    await insertKey(trx, { ...parts, ...own, ...rates });
    const entry = { actor: caller.key_id, action: 'key.created', subject: parts.key_id };
    const data = { name, scopes };
    await insertAudits(
      trx,
      projects.map((project_id) => ({ ...entry, project_id, data })),
    );
  });
  return { key_id: parts.key_id, key };
}

/** The keys that share a project with the caller. */
export async function listKeysOf(
  { db }: Pick<Ctx, 'db'>,
  { projects }: Caller,
  { limit, cursor }: PageRequest,
) {
  const after = cursor === undefined ? null : decodeCursor(cursor);
  const rows = await listKeys(db, { projects, after, limit: limit + 1 });
  return toPage(rows, limit, { key: (row) => row.key_id, item: (row) => toKey(row, projects) });
}

const shownGoingOn = 1_000;

/**
 * Revokes a key and all below it. Revoking again changes nothing.
 *
 * @returns the keys that it revoked, and their remaining effects
 * @throws AppError `not_found` when the caller shares no project with it, `forbidden` for an operator's key
 */
export async function revokeKey(
  { db, verifiedKeys }: KeyCtx,
  caller: Caller,
  keyId: string,
): Promise<KeyRevoked> {
  const ended = await db.transaction(async (trx) => {
    await takeLock(trx, 'keys');
    const row = await findKeyOf(trx, keyId, caller.projects);
    if (row === null) throw new AppError('not_found', `no key ${keyId}`);
    if (row.scopes.includes('operator') && !isOperator(caller))
      throw new AppError(
        'forbidden',
        `${keyId} has the scope operator; only a key with this scope can revoke it`,
      );
    const revoked = await revokeWithKeysBelow(trx, keyId);
    const entries = revoked.flatMap(({ key_id, projects }) => {
      const data: JsonObject = key_id === keyId ? {} : { revoked_with: keyId };
      const entry = { actor: caller.key_id, action: 'key.revoked', subject: key_id, data };
      return projects.map((project_id) => ({ ...entry, project_id }));
    });
    if (entries.length > 0) await insertAudits(trx, entries);
    const { webhooks, hooks, schedules } = await listGoingOn(trx, keyId, {
      projects: caller.projects,
      most: shownGoingOn,
    });
    return {
      key_ids: revoked.map(({ key_id }) => key_id),
      going_on: { webhooks: [...webhooks], hooks: [...hooks], schedules: [...schedules] },
    };
  });
  forgetKeys(verifiedKeys, ended.key_ids);
  return ended;
}

/**
 * Gives a key a new secret; the former one works for `overlapS` more. A key renews itself only with its present secret:
 * otherwise the holder of a session, or of a replaced secret, would keep the key for good.
 *
 * @throws AppError `forbidden` without the present secret, `not_found` when the key is not the caller or below it, has
 * ended, or is a person
 */
export async function rotateKey(
  ctx: KeyCtx & ModeCtx,
  caller: Caller,
  { keyId, overlapS }: { readonly keyId: string; readonly overlapS: number },
): Promise<KeyCreated> {
  if (isPersonId(keyId)) throw new AppError('not_found', `${keyId} is a person and has no secret`);
  if (keyId === caller.key_id && caller.shown !== undefined)
    throw new AppError(
      'forbidden',
      `${keyId} can be rotated with its current secret only, not with a ${caller.shown}`,
    );
  const fresh = generateSecret(environmentOf(ctx), keyId);
  await ctx.db.transaction(async (trx) => {
    await takeLock(trx, 'keys');
    const row = await findKeyOf(trx, keyId, caller.projects);
    const renewed = { secret_sha256: fresh.secret_sha256, overlapS };
    if (row === null || !(await replaceSecret(trx, { keyId, from: caller.key_id }, renewed)))
      throw new AppError('not_found', `no active key ${keyId} at or below ${caller.key_id}`);
    await endSessionsOf(trx, keyId, overlapS);
    const entry = { actor: caller.key_id, action: 'key.rotated', subject: keyId };
    const data = { overlap_s: overlapS };
    await insertAudits(
      trx,
      row.projects.map((project_id) => ({ ...entry, project_id, data })),
    );
  });
  forgetKeys(ctx.verifiedKeys, [keyId]);
  return { key_id: keyId, key: fresh.key };
}
