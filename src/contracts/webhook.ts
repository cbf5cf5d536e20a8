/** Telling others what happens in a project: who is told of what, and every delivery. */
import { z } from 'zod';
import { Instant, JsonObject, listOf } from './primitives.ts';

/**
 * run.ended: succeeded, failed or cancelled. review.opened: a person is asked. budget.reached: 50, 80 or 100 % of the
 * project's day. instance.down: one that the project registered. test: asked for.
 */
export const WebhookEvent = z
  .enum(['run.ended', 'review.opened', 'budget.reached', 'instance.down'])
  .meta({ id: 'WebhookEvent' });
export type WebhookEvent = z.infer<typeof WebhookEvent>;

const WebhookUrl = z
  .url({ protocol: /^https?$/ })
  .max(2_048)
  .meta({ description: 'http or https without user and fragment, where `ALLOWED_CIDRS` lets instances be.' });

/** Body of `POST /v1/webhooks`. */
export const WebhookRequest = z
  .strictObject({ url: WebhookUrl, events: z.array(WebhookEvent).min(1).max(10) })
  .meta({ id: 'WebhookRequest' });
export type WebhookRequest = z.infer<typeof WebhookRequest>;

export const Webhook = z
  .strictObject({
    webhook_id: z.string(),
    url: z.string(),
    events: z.array(WebhookEvent),
    /** The key that made it. */
    created_by: z.string(),
    created_at: Instant,
  })
  .meta({ id: 'Webhook' });
export type Webhook = z.infer<typeof Webhook>;
export const WebhookList = listOf(Webhook).meta({ id: 'WebhookList' });
export type WebhookList = z.infer<typeof WebhookList>;

/** The secret that deliveries are signed with is shown once, here. */
export const WebhookCreated = Webhook.extend({ secret: z.string() }).meta({ id: 'WebhookCreated' });
export type WebhookCreated = z.infer<typeof WebhookCreated>;

export const DeliveryState = z.enum(['pending', 'delivered', 'failed']).meta({ id: 'DeliveryState' });
export type DeliveryState = z.infer<typeof DeliveryState>;

export const WebhookDelivery = z
  .strictObject({
    delivery_id: z.string(),
    event: z.union([WebhookEvent, z.literal('test')]),
    /** What is sent. */
    payload: JsonObject,
    state: DeliveryState,
    attempts: z.number().int(),
    /** Of the last try; null: no answer. */
    status: z.number().int().nullable(),
    /** Why the last try failed. */
    error: z.string().optional(),
    /** Of a pending one. */
    next_try_at: Instant.nullable(),
    created_at: Instant,
    finished_at: Instant.nullable(),
  })
  .meta({ id: 'WebhookDelivery' });
export type WebhookDelivery = z.infer<typeof WebhookDelivery>;
export const WebhookDeliveryList = listOf(WebhookDelivery).meta({ id: 'WebhookDeliveryList' });
