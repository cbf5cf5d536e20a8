/** Webhooks: which events are sent to which URL, and every delivery. */
import { z } from 'zod';
import { Instant, JsonObject, listOf } from './primitives.ts';

/**
 * run.ended: succeeded, failed or cancelled. review.opened: a review needs a person. budget.reached: 50, 80 or 100 % of
 * the project's day, or a mark of the budget of a key, label, capability or user. instance.down: an instance that the
 * project registered. `test`, in deliveries only: requested by a client.
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
    /** The creating key. */
    created_by: z.string(),
    created_at: Instant,
  })
  .meta({ id: 'Webhook' });
export type Webhook = z.infer<typeof Webhook>;
export const WebhookList = listOf(Webhook).meta({ id: 'WebhookList' });
export type WebhookList = z.infer<typeof WebhookList>;

/** The only answer with the secret that signs deliveries. */
export const WebhookCreated = Webhook.extend({ secret: z.string() }).meta({ id: 'WebhookCreated' });
export type WebhookCreated = z.infer<typeof WebhookCreated>;

export const DeliveryState = z.enum(['pending', 'delivered', 'failed']).meta({ id: 'DeliveryState' });
export type DeliveryState = z.infer<typeof DeliveryState>;

export const WebhookDelivery = z
  .strictObject({
    delivery_id: z.string(),
    event: z.union([WebhookEvent, z.literal('test')]),
    /** The body of the request. */
    payload: JsonObject,
    state: DeliveryState,
    attempts: z.number().int(),
    /** HTTP status of the last attempt; null: no answer. */
    status: z.number().int().nullable(),
    /** The error of the last attempt. */
    error: z.string().optional(),
    /** Set for a pending delivery. */
    next_try_at: Instant.nullable(),
    created_at: Instant,
    finished_at: Instant.nullable(),
  })
  .meta({ id: 'WebhookDelivery' });
export type WebhookDelivery = z.infer<typeof WebhookDelivery>;
export const WebhookDeliveryList = listOf(WebhookDelivery).meta({ id: 'WebhookDeliveryList' });
