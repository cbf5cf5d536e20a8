/**
 * The webhooks of a project, for its administrators: addresses, subscribed events, and the results of deliveries.
 */
import { isIP } from 'node:net';
import { toWire } from '@capstan/core/contracts/to-wire';
import {
  Webhook,
  type WebhookCreated,
  WebhookDelivery,
  type WebhookRequest,
} from '@capstan/core/contracts/webhook';
import { AppError } from '@capstan/core/errors/app-error';
import type { AddressPolicy } from '@capstan/guarded-dial/address-policy';
import type { Ctx, ServerCtx } from '../../context.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import {
  deleteWebhook,
  endDelivery,
  findWebhook,
  insertDelivery,
  insertWebhook,
  listDeliveries,
  listWebhooks,
  readDelivery,
  updateWebhook,
  type WebhookDeliveryRow,
  type WebhookRow,
} from '../../db/webhook/webhook.ts';
import { newId } from '../../parts/ids.ts';
import type { Caller } from '../access/caller.ts';
import { decodeCursor, type PageRequest, toPage } from '../cursor.ts';
import { newWebhookSecret, tell } from './delivery.ts';

function refuse(message: string): AppError {
  return new AppError('request_invalid', `url ${message}`, {
    errors: [{ pointer: '/url', code: 'invalid_address', message }],
  });
}

/**
 * Checks a receiver's address: http(s), where instances may be. Names are checked again when they are dialled.
 * @returns the address as it will be dialled
 * @throws AppError `request_invalid`
 */
function checkWebhookUrl(policy: AddressPolicy, text: string): string {
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw refuse(`is ${url.protocol}, only http: and https: are allowed`);
  if (url.username !== '' || url.password !== '')
    throw refuse('has a user or password, which is not allowed');
  if (text.includes('#')) throw refuse('has a fragment, which is not allowed');
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  const fault = isIP(host) === 0 ? policy.findNameFault(host, port) : policy.findFault(host, port);
  if (fault !== null) throw refuse(`is not allowed: ${fault}`);
  return url.href;
}

const mostWebhooks = 20;

function toWebhook(row: WebhookRow): Webhook {
  return toWire(Webhook, row);
}

function toDelivery(row: WebhookDeliveryRow): WebhookDelivery {
  return toWire(WebhookDelivery, row);
}

function refuseUnknown(id: string): AppError {
  return new AppError('not_found', `there is no webhook ${id}`);
}

async function requireWebhook(db: Db, { project_id }: Caller, id: string): Promise<WebhookRow> {
  const row = await findWebhook(db, project_id, id);
  if (row === undefined) throw refuseUnknown(id);
  return row;
}

function afterOf(cursor: string | undefined): string | null {
  return cursor === undefined ? null : decodeCursor(cursor);
}

/** @throws AppError `request_invalid` for an address that is not allowed, `limit_reached` */
export async function createWebhook(
  { db, policy }: Pick<Ctx, 'db' | 'policy'>,
  { project_id, key_id: created_by }: Caller,
  { url, events }: WebhookRequest,
): Promise<WebhookCreated> {
  const checked = checkWebhookUrl(policy, url);
  const own = { webhook_id: newId('webhook'), secret: newWebhookSecret(), created_by };
  return db.transaction(async (trx) => {
    const webhook = { ...own, project_id, url: checked, events: [...new Set(events)] };
    const row = await insertWebhook(trx, webhook, mostWebhooks);
    if (row === undefined)
      throw new AppError(
        'limit_reached',
        `the project has ${mostWebhooks} webhooks, the highest number that is allowed; delete one first`,
      );
    const entry = { project_id, actor: created_by, action: 'webhook.created', subject: row.webhook_id };
    await insertAudit(trx, { ...entry, data: { origin: new URL(checked).origin } });
    return { ...toWebhook(row), secret: row.secret };
  });
}

export async function listWebhooksOf(
  { db }: Pick<Ctx, 'db'>,
  { project_id }: Caller,
  { limit, cursor }: PageRequest,
) {
  const rows = await listWebhooks(db, project_id, { after: afterOf(cursor), limit: limit + 1 });
  return toPage(rows, limit, { key: (row) => row.webhook_id, item: toWebhook });
}

/** Its secret and its log stay. @throws AppError `request_invalid`, `not_found` */
export function replaceWebhook(
  { db, policy }: Pick<Ctx, 'db' | 'policy'>,
  { caller: { project_id, key_id: actor }, id }: { readonly caller: Caller; readonly id: string },
  { url, events }: WebhookRequest,
): Promise<Webhook> {
  const checked = checkWebhookUrl(policy, url);
  return db.transaction(async (trx) => {
    const webhook = { webhook_id: id, project_id, url: checked, events: [...new Set(events)] };
    const row = await updateWebhook(trx, webhook);
    if (row === undefined) throw refuseUnknown(id);
    const data = { origin: new URL(checked).origin };
    await insertAudit(trx, { project_id, actor, action: 'webhook.replaced', subject: id, data });
    return toWebhook(row);
  });
}

/** With its log. @throws AppError `not_found` */
export function removeWebhook(
  { db }: Pick<Ctx, 'db'>,
  { project_id, key_id }: Caller,
  id: string,
): Promise<void> {
  return db.transaction(async (trx) => {
    if (!(await deleteWebhook(trx, project_id, id))) throw refuseUnknown(id);
    await insertAudit(trx, { project_id, actor: key_id, action: 'webhook.removed', subject: id, data: {} });
  });
}

/** Sends a test delivery now; the log has its result. @throws AppError `not_found` */
export async function testWebhook(
  { db, webhookSender }: Pick<ServerCtx, 'db' | 'webhookSender'>,
  caller: Caller,
  id: string,
): Promise<WebhookDelivery> {
  const { webhook_id, url, secret } = await requireWebhook(db, caller, id);
  const delivery_id = newId('delivery');
  const payload = { type: 'test', at: new Date().toISOString(), data: {} };
  await insertDelivery(db, { delivery_id, webhook_id, event: 'test', payload });
  await endDelivery(db, await tell(webhookSender, { delivery_id, url, secret, payload }, null));
  const row = await readDelivery(db, delivery_id);
  if (row === undefined) throw refuseUnknown(webhook_id);
  return toDelivery(row);
}

/** Newest first. @throws AppError `not_found` */
export async function listDeliveriesOf(
  { db }: Pick<Ctx, 'db'>,
  { caller, webhookId }: { readonly caller: Caller; readonly webhookId: string },
  { limit, cursor }: PageRequest,
) {
  await requireWebhook(db, caller, webhookId);
  const rows = await listDeliveries(db, webhookId, { after: afterOf(cursor), limit: limit + 1 });
  return toPage(rows, limit, { key: (row) => row.delivery_id, item: toDelivery });
}
