/** What somebody is told, and how it went. */
import type { JsonObject } from '../../contracts/primitives.ts';
import type { DeliveryState, WebhookDelivery } from '../../contracts/webhook.ts';
import type { Db } from '../connect.ts';
import { purgeOld } from '../purge.ts';
import type { WebhookRow } from './webhook.ts';

export interface WebhookDeliveryRow {
  readonly delivery_id: string;
  readonly webhook_id: string;
  readonly event: WebhookDelivery['event'];
  readonly payload: JsonObject;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly status: number | null;
  readonly error: string | null;
  readonly next_try_at: Date | null;
  readonly created_at: Date;
  readonly finished_at: Date | null;
}

export type DueDelivery = Pick<WebhookDeliveryRow, 'delivery_id' | 'event' | 'payload' | 'attempts'> &
  Pick<WebhookRow, 'webhook_id' | 'project_id' | 'url' | 'secret'>;

/** How many deliveries may be taken. */
export interface DeliveryRoom {
  readonly all: number;
  readonly ofWebhook: number;
  readonly ofProject: number;
  /** Where it is less than that, by webhook and project. */
  readonly left: {
    readonly webhooks: ReadonlyMap<string, number>;
    readonly projects: ReadonlyMap<string, number>;
  };
}

/**
 * Takes what is due: the oldest of each webhook, in turns by project, so that nobody waits behind what others have due.
 * Nobody else takes them for `leaseMs`.
 */
export async function takeDueDeliveries(
  db: Db,
  { room, leaseMs }: { readonly room: DeliveryRoom; readonly leaseMs: number },
): Promise<readonly DueDelivery[]> {
  const { rows } = await db.raw<{ rows: DueDelivery[] }>(
    `with recursive told as (
       (select webhook_id from webhook_delivery where state = 'pending' order by webhook_id limit 1)
       union all
       select (select d.webhook_id from webhook_delivery d where d.state = 'pending' and d.webhook_id > t.webhook_id
         order by d.webhook_id limit 1)
       from told t where t.webhook_id is not null
     ), due as (
       select d.delivery_id, d.next_try_at, w.project_id,
         row_number() over (partition by w.webhook_id order by d.next_try_at) as turn
       from told join webhook w using (webhook_id) cross join lateral (
         select delivery_id, next_try_at from webhook_delivery
         where webhook_id = w.webhook_id and state = 'pending' and next_try_at <= clock_timestamp()
         order by next_try_at limit coalesce((:webhooks::jsonb ->> w.webhook_id)::int, :ofWebhook)) d
     ), fair as (
       select delivery_id, project_id, row_number() over (partition by project_id order by turn, next_try_at) as turn
       from due
     ), chosen as (
       select delivery_id from fair
       where turn <= coalesce((:projects::jsonb ->> project_id)::int, :ofProject) order by turn limit :all
     )
     update webhook_delivery d set next_try_at = clock_timestamp() + :leaseMs * interval '1 millisecond'
     from chosen, webhook w
     where d.delivery_id = chosen.delivery_id and w.webhook_id = d.webhook_id
       and d.state = 'pending' and d.next_try_at <= clock_timestamp()
     returning d.delivery_id, d.event, d.payload, d.attempts, w.webhook_id, w.project_id, w.url, w.secret`,
    {
      ...room,
      leaseMs,
      webhooks: JSON.stringify(Object.fromEntries(room.left.webhooks)),
      projects: JSON.stringify(Object.fromEntries(room.left.projects)),
    },
  );
  return rows;
}

export interface DeliveryEnd {
  readonly delivery_id: string;
  readonly status: number | null;
  readonly error: string | null;
  /** Null: it is over. */
  readonly againInMs: number | null;
}

export async function endDelivery(
  db: Db,
  { delivery_id, status, error, againInMs }: DeliveryEnd,
): Promise<void> {
  const state = againInMs !== null ? 'pending' : error === null ? 'delivered' : 'failed';
  await db.raw(
    `update webhook_delivery set attempts = attempts + 1, status = :status, error = :error, state = :state,
       next_try_at = clock_timestamp() + cast(:againInMs as float8) * interval '1 millisecond',
       finished_at = case when :state <> 'pending' then clock_timestamp() end
     where delivery_id = :delivery_id and state = 'pending'`,
    { delivery_id, status, error, state, againInMs },
  );
}

export async function insertDelivery(
  db: Db,
  delivery: Pick<WebhookDeliveryRow, 'delivery_id' | 'webhook_id' | 'event' | 'payload'>,
): Promise<void> {
  await db('webhook_delivery').insert({
    ...delivery,
    subject: delivery.delivery_id,
    payload: JSON.stringify(delivery.payload),
    next_try_at: db.raw(`clock_timestamp() + interval '1 minute'`),
  });
}

export function readDelivery(db: Db, delivery_id: string): Promise<WebhookDeliveryRow | undefined> {
  return db('webhook_delivery').where({ delivery_id }).first('*');
}

/** Newest first. @param after the last delivery of the page before */
export async function listDeliveries(
  db: Db,
  webhookId: string,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<readonly WebhookDeliveryRow[]> {
  const { rows } = await db.raw<{ rows: WebhookDeliveryRow[] }>(
    `select * from webhook_delivery where webhook_id = :webhookId and (:after::text is null
       or (created_at, delivery_id) < (select created_at, delivery_id from webhook_delivery where delivery_id = :after))
     order by created_at desc, delivery_id desc limit :limit`,
    { webhookId, after, limit },
  );
  return rows;
}

/** Of 30 days ago. @returns how many */
export function purgeDeliveries(db: Db): Promise<number> {
  return purgeOld(db, { table: 'webhook_delivery', hours: 720 });
}
