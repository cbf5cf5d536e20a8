/**
 * The hooks of a project, for its administrators: what they start, their secrets, and the log of their deliveries. A
 * hook is known by its name within its project, so that no project learns the names of another.
 */
import { randomBytes } from 'node:crypto';
import type {
  Hook,
  HookCreated,
  HookDelivery,
  HookDeliveryDetail,
  HookRequest,
  HookRotation,
  HookSettings,
} from '@capstan/core/contracts/hook';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { AppError, refuseField, refuseRequest } from '@capstan/core/errors/app-error';
import type { Ctx } from '../../context.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import {
  deleteHook,
  findHook,
  findReceived,
  type HookKey,
  type HookRow,
  insertHook,
  listHooks,
  listReceived,
  type ReceivedRow,
  replaceHookSecret,
  updateHook,
} from '../../db/webhook/hook.ts';
import { newId } from '../../parts/ids.ts';
import type { Caller } from '../access/caller.ts';
import { decodeCursor, type PageRequest, toPage } from '../cursor.ts';
import { findTarget } from '../schedules/validation.ts';
import { findSecretFault } from './signature.ts';
import { checkTemplates } from './templates.ts';

type HookCtx = Pick<Ctx, 'db' | 'config' | 'definitions'>;
type HookActor = Pick<Caller, 'project_id' | 'key_id'>;

/** The hook to change, and the actor who changes it. */
export interface HookTarget {
  readonly by: HookActor;
  readonly name: string;
}

const mostHooks = 50;

function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

function hookNotFound({ name }: Pick<HookKey, 'name'>): AppError {
  return new AppError('not_found', `there is no hook ${name}`);
}

/** @throws AppError `not_found` */
export async function requireHook({ db }: Pick<Ctx, 'db'>, key: HookKey): Promise<HookRow> {
  const row = await findHook(db, key);
  if (row === undefined) throw hookNotFound(key);
  return row;
}

function urlOf({ config }: Pick<Ctx, 'config'>, { project_id, name }: HookKey): string {
  const { PUBLIC_URL: base = '' } = config;
  return `${base.replace(/\/$/, '')}/v1/hooks/${name}?project_id=${project_id}`;
}

function toHook(ctx: Pick<Ctx, 'config'>, row: HookRow): Hook {
  const { hook_id, name, body, created_by, created_at, updated_at, former_until } = row;
  const { refusals: count, refused_at: at, refuse_reason: reason } = row;
  return {
    hook_id,
    name,
    ...body,
    url: urlOf(ctx, row),
    refused: at === null || reason === null ? null : { count, at: at.toISOString(), reason },
    former_until: former_until?.toISOString() ?? null,
    created_by,
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
  };
}

/** @throws AppError `request_invalid` that names every fault */
async function checkHook(ctx: HookCtx, projectId: string, settings: HookSettings): Promise<void> {
  const target = await findTarget(ctx, projectId, settings);
  const errors = [...('pointer' in target ? [target] : []), ...checkTemplates(settings)];
  if (errors.length > 0) throw refuseRequest(errors);
}

/** @throws AppError `request_invalid` */
function chooseSecret(signature: HookSettings['signature'], given: string | undefined): string {
  if (given === undefined && signature === 'slack')
    throw refuseField('/secret', 'give the signing secret of the Slack app, under "Basic Information" there');
  const fault = given === undefined ? null : findSecretFault(signature, given);
  if (fault !== null) throw refuseField('/secret', fault);
  return given ?? newSecret();
}

interface HookAct {
  readonly action: `hook.${'created' | 'replaced' | 'rotated' | 'deleted'}`;
  readonly subject: string;
  readonly data?: JsonObject;
}

function noteHook(trx: Db, { project_id, key_id: actor }: HookActor, act: HookAct): Promise<void> {
  return insertAudit(trx, { project_id, actor, data: {}, ...act });
}

/** @throws AppError `request_invalid`, `state_conflict` for a name that is in use, `limit_reached` */
export async function createHook(
  ctx: HookCtx,
  by: HookActor,
  { name, secret: given, ...settings }: HookRequest,
): Promise<HookCreated> {
  const { project_id, key_id: created_by } = by;
  const secret = chooseSecret(settings.signature, given);
  await checkHook(ctx, project_id, settings);
  const hook = { hook_id: newId('hook'), project_id, name, body: settings, secret, created_by };
  const row = await ctx.db.transaction(async (trx) => {
    const made = await insertHook(trx, hook, mostHooks);
    if (made === undefined && (await findHook(trx, hook)) !== undefined)
      throw new AppError(
        'state_conflict',
        `a hook named ${name} exists already; change it or use another name`,
      );
    if (made === undefined)
      throw new AppError(
        'limit_reached',
        `the project has ${mostHooks} hooks, the highest number that is allowed; delete one first`,
      );
    const { pipeline, signature } = settings;
    await noteHook(trx, by, {
      action: 'hook.created',
      subject: made.hook_id,
      data: { name, pipeline, signature },
    });
    return made;
  });
  return { ...toHook(ctx, row), secret };
}

/** By name. */
export async function listHooksOf(
  ctx: Pick<Ctx, 'db' | 'config'>,
  projectId: string,
  { limit, cursor }: PageRequest,
) {
  const after = cursor === undefined ? null : decodeCursor(cursor);
  const rows = await listHooks(ctx.db, projectId, { after, limit: limit + 1 });
  return toPage(rows, limit, { key: ({ name }) => name, item: (row) => toHook(ctx, row) });
}

/** @throws AppError `not_found` */
export async function getHook(ctx: Pick<Ctx, 'db' | 'config'>, key: HookKey): Promise<Hook> {
  return toHook(ctx, await requireHook(ctx, key));
}

/** Its name and secret stay. @throws AppError as `createHook`, and `not_found` */
export async function replaceHook(
  ctx: HookCtx,
  { by, name }: HookTarget,
  settings: HookSettings,
): Promise<Hook> {
  const { project_id } = by;
  const { secret } = await requireHook(ctx, { project_id, name });
  chooseSecret(settings.signature, secret);
  await checkHook(ctx, project_id, settings);
  return ctx.db.transaction(async (trx) => {
    const row = await updateHook(trx, { project_id, name }, settings);
    if (row === undefined) throw hookNotFound({ name });
    const { pipeline, signature, enabled } = settings;
    const data = { name, pipeline, signature, enabled };
    await noteHook(trx, by, { action: 'hook.replaced', subject: row.hook_id, data });
    return toHook(ctx, row);
  });
}

/** Until the end of the overlap both secrets work. @throws AppError `request_invalid`, `not_found` */
export async function rotateHook(
  ctx: Pick<Ctx, 'db' | 'config'>,
  { by, name }: HookTarget,
  { secret: given, overlap_s: overlapS }: HookRotation,
): Promise<HookCreated> {
  const { project_id } = by;
  const { body } = await requireHook(ctx, { project_id, name });
  const secret = chooseSecret(body.signature, given);
  return ctx.db.transaction(async (trx) => {
    const row = await replaceHookSecret(trx, { project_id, name }, { secret, overlapS });
    if (row === undefined) throw hookNotFound({ name });
    await noteHook(trx, by, {
      action: 'hook.rotated',
      subject: row.hook_id,
      data: { name, overlap_s: overlapS },
    });
    return { ...toHook(ctx, row), secret };
  });
}

/** With its log. @throws AppError `not_found` */
export function removeHook({ db }: Pick<Ctx, 'db'>, { by, name }: HookTarget): Promise<void> {
  return db.transaction(async (trx) => {
    const subject = await deleteHook(trx, { project_id: by.project_id, name });
    if (subject === undefined) throw hookNotFound({ name });
    await noteHook(trx, by, { action: 'hook.deleted', subject, data: { name } });
  });
}

function toDelivery(row: Omit<ReceivedRow, 'headers' | 'body'>): HookDelivery {
  const { delivery_id, outcome, run_id, reason, key, replay_of, bytes, created_at } = row;
  return {
    delivery_id,
    outcome,
    run_id,
    reason,
    key,
    replay_of,
    bytes,
    received_at: created_at.toISOString(),
  };
}

/** Newest first. @throws AppError `not_found` */
export async function listReceivedOf(ctx: Pick<Ctx, 'db'>, key: HookKey, { limit, cursor }: PageRequest) {
  const { hook_id } = await requireHook(ctx, key);
  const after = cursor === undefined ? null : decodeCursor(cursor);
  const rows = await listReceived(ctx.db, hook_id, { after, limit: limit + 1 });
  return toPage(rows, limit, { key: (row) => row.delivery_id, item: toDelivery });
}

/** @throws AppError `not_found` */
export async function requireReceived(
  { db }: Pick<Ctx, 'db'>,
  { hook_id }: Pick<HookRow, 'hook_id'>,
  deliveryId: string,
): Promise<ReceivedRow> {
  const row = await findReceived(db, hook_id, deliveryId);
  if (row === undefined) throw new AppError('not_found', `there is no delivery ${deliveryId} of this hook`);
  return row;
}

/** @throws AppError `not_found` */
export async function getReceived(
  ctx: Pick<Ctx, 'db'>,
  key: HookKey,
  deliveryId: string,
): Promise<HookDeliveryDetail> {
  const row = await requireReceived(ctx, await requireHook(ctx, key), deliveryId);
  return { ...toDelivery(row), headers: row.headers, body: row.body };
}
