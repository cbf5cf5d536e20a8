/**
 * Webhooks, their deliveries, and the results of those.
 *
 * `findHappenings` finds the events since a webhook was last looked at, and writes each once as a delivery. The search
 * looks back a minute further than the last one, to find events that were committed late. Ids of reviews begin with the
 * time of their creation, within the difference of the clocks.
 */

import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { DeliveryState, WebhookDelivery, WebhookEvent } from '@capstan/core/contracts/webhook';
import type { Db } from '../connect.ts';
import { runsWithin } from '../run/run-list.ts';
import { instantText, purgeOld, query, toJson } from '../statements.ts';

export interface WebhookRow {
  readonly webhook_id: string;
  readonly project_id: string;
  readonly url: string;
  readonly events: readonly WebhookEvent[];
  readonly secret: string;
  readonly created_by: string;
  readonly created_at: Date;
}

type NewWebhook = Omit<WebhookRow, 'created_at'>;

/** @returns undefined if the project has `most` webhooks */
export function insertWebhook(
  db: Db,
  { webhook_id, project_id, url, events, secret, created_by }: NewWebhook,
  most: number,
): Promise<WebhookRow | undefined> {
  return query<WebhookRow>(db).first(
    `insert into webhook (webhook_id, project_id, url, events, secret, created_by)
     select ?, ?, ?, ?, ?, ? where (select count(*) from webhook where project_id = ?) < ? returning *`,
    [webhook_id, project_id, url, [...events], secret, created_by, project_id, most],
  );
}

/** Oldest first. */
export function listWebhooks(
  db: Db,
  project_id: string,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<readonly WebhookRow[]> {
  return query<WebhookRow>(db).all(
    `select * from webhook where project_id = ? and webhook_id > coalesce(?, '') order by webhook_id limit ?`,
    [project_id, after, limit],
  );
}

export function findWebhook(db: Db, project_id: string, webhook_id: string): Promise<WebhookRow | undefined> {
  return db('webhook').where({ project_id, webhook_id }).first('*');
}

/** Its secret stays. @returns undefined if there is none */
export function updateWebhook(
  db: Db,
  { webhook_id, project_id, url, events }: Pick<WebhookRow, 'webhook_id' | 'project_id' | 'url' | 'events'>,
): Promise<WebhookRow | undefined> {
  return query<WebhookRow>(db).first(
    'update webhook set url = ?, events = ? where project_id = ? and webhook_id = ? returning *',
    [url, [...events], project_id, webhook_id],
  );
}

/** Deletes the webhook with its deliveries. @returns false if there was none */
export async function deleteWebhook(db: Db, project_id: string, webhook_id: string): Promise<boolean> {
  return (await db('webhook').where({ project_id, webhook_id }).delete()) > 0;
}

// Deliveries and their results.

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

/** How many deliveries may start. */
export interface DeliveryRoom {
  readonly all: number;
  readonly ofWebhook: number;
  readonly ofProject: number;
  /** The rest, by webhook and project, if less than `ofWebhook` or `ofProject`. */
  readonly left: {
    readonly webhooks: ReadonlyMap<string, number>;
    readonly projects: ReadonlyMap<string, number>;
  };
}

/**
 * Takes due deliveries: the oldest of each webhook, in turns by project, so that no project waits behind the backlog of
 * another. They are leased to the caller for `leaseMs`.
 */
export function takeDueDeliveries(
  db: Db,
  { room, leaseMs }: { readonly room: DeliveryRoom; readonly leaseMs: number },
): Promise<readonly DueDelivery[]> {
  return query<DueDelivery>(db).all(
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
      webhooks: toJson(Object.fromEntries(room.left.webhooks)),
      projects: toJson(Object.fromEntries(room.left.projects)),
    },
  );
}

export interface DeliveryEnd {
  readonly delivery_id: string;
  readonly status: number | null;
  readonly error: string | null;
  /** Null: it is not retried. */
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
    payload: toJson(delivery.payload),
    next_try_at: db.raw(`clock_timestamp() + interval '1 minute'`),
  });
}

export function readDelivery(db: Db, delivery_id: string): Promise<WebhookDeliveryRow | undefined> {
  return db('webhook_delivery').where({ delivery_id }).first('*');
}

/** Newest first. @param after the last delivery of the page before */
export function listDeliveries(
  db: Db,
  webhookId: string,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<readonly WebhookDeliveryRow[]> {
  return query<WebhookDeliveryRow>(db).all(
    `select * from webhook_delivery where webhook_id = :webhookId and (:after::text is null
       or (created_at, delivery_id) < (select created_at, delivery_id from webhook_delivery where delivery_id = :after))
     order by created_at desc, delivery_id desc limit :limit`,
    { webhookId, after, limit },
  );
}

/** Deletes deliveries after 30 days. @returns how many */
export function purgeDeliveries(db: Db): Promise<number> {
  return purgeOld(db, { table: 'webhook_delivery', hours: 720 });
}

const runs = `select w.webhook_id, 'run.ended' as event, r.run_id as subject, json_build_object(
    'run_id', r.run_id, 'pipeline', r.pipeline, 'version', r.version, 'state', r.state, 'error', r.error,
    'labels', r.labels, 'rerun_of', r.rerun_of, 'cost_usd', (
      select coalesce(sum(settled_nano), 0) / 1e9 from attempt where attempt.run_id = any (${runsWithin}))::float8, 'created_at', ${instantText('r.created_at')}, 'finished_at', ${instantText('r.finished_at')}) as data, r.finished_at as at
  from due w join run r on r.project_id = w.project_id and r.finished_at > w.since
  where 'run.ended' = any (w.events) and r.parent_run_id is null and not exists (select from webhook_delivery d
    where d.webhook_id = w.webhook_id and d.event = 'run.ended' and d.subject = r.run_id)`;

const reviews = `select w.webhook_id, 'review.opened', v.review_id || '.' || v.round, json_build_object(
    'review_id', v.review_id, 'kind', v.kind, 'reason', v.reason, 'run_id', v.run_id, 'step_id', v.step_id,
    'due_at', ${instantText('v.due_at')}), v.created_at
  from due w join review v on v.project_id = w.project_id and v.review_id >= w.first_review and v.created_at > w.since
  where 'review.opened' = any (w.events)`;

const budgets = `select w.webhook_id, 'budget.reached', b.window_start || '.' || m.percent, json_build_object(
    'day', b.window_start, 'percent', m.percent, 'limit_usd', b.limit_nano / 1e9, 'spent_usd', b.spent_nano / 1e9), m.at
  from due w join budget b on b.scope = 'project:' || w.project_id and b.window_start > w.since::date - 2
  cross join lateral (values (50, b.reached_50_at), (80, b.reached_80_at), (100, b.reached_100_at)) m (percent, at)
  where 'budget.reached' = any (w.events) and m.at > w.since
  union all
  select w.webhook_id, 'budget.reached', s.period || ':' || s.scope || '.'
      || case s.period when 'total' then b.limit_nano || 'n' else b.window_start::text end || '.' || m.percent,
    json_build_object('scope', s.scope, 'period', s.period, 'day', nullif(b.window_start, '-infinity'), 'percent', m.percent,
      'limit_usd', b.limit_nano / 1e9, 'spent_usd', b.spent_nano / 1e9), m.at
  from due w join scoped s on s.project_id = w.project_id
  join budget b on b.scope = 'budget:' || s.project_id || ':' || s.period || ':' || s.scope
    and (b.window_start > w.since::date - 32 or b.window_start = '-infinity')
  cross join lateral (values ((b.soft * 100)::float8, b.reached_80_at), (100, b.reached_100_at)) m (percent, at)
  where 'budget.reached' = any (w.events) and m.at > w.since`;

const instances = `select w.webhook_id, 'instance.down', i.instance_id || '.' || extract(epoch from i.down_since),
    json_build_object('name', i.name, 'endpoint', i.endpoint, 'reason', i.reason,
      'down_since', ${instantText('i.down_since')}), i.down_since
  from due w join instance i on i.owner_project = w.project_id and i.down_since > w.since
  where 'instance.down' = any (w.events) and i.state = 'down'`;

/** @returns how many deliveries it wrote */
export async function findHappenings(db: Db): Promise<number> {
  const row = await query<{ count: number }>(db, 'find_happenings').one(`with due as materialized (
       select *, 'rev_' || substr(hex, 1, 8) || '-' || substr(hex, 9) as first_review from (
         select *, lpad(to_hex((extract(epoch from since - interval '1 hour') * 1000)::bigint), 12, '0') as hex from (
           select webhook_id, project_id, events, greatest(created_at, looked_at - interval '1 minute') as since
           from webhook) w) w
     ), looked as (
       update webhook set looked_at = now() where looked_at < now() - interval '20 seconds'
     ), scoped as materialized (
       select s.* from scoped_budget s where s.project_id in (select project_id from due)
       for key share skip locked -- so that no happening of a removed budget is written after the erasure of its user
     ), happened as (
       ${runs} union all ${reviews} union all ${budgets} union all ${instances}
     ), written as (
       insert into webhook_delivery (delivery_id, webhook_id, event, subject, payload)
       select 'dlv_' || gen_random_uuid(), webhook_id, event, subject,
         json_build_object('type', event, 'at', ${instantText('at')}, 'data', data)
       from happened on conflict do nothing returning 1
     )
     select count(*)::int as count from written`);
  return row.count;
}
