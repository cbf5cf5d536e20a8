/**
 * The headers by which a receiver knows that a delivery is ours, has this content and is no old one: those of Standard
 * Webhooks, so that its libraries check them.
 */
import { createHmac, randomBytes } from 'node:crypto';

const prefix = 'whsec_';

export function newWebhookSecret(): string {
  return `${prefix}${randomBytes(32).toString('base64')}`;
}

/** @param seconds Unix time of this try */
export function signDelivery(
  secret: string,
  { id, seconds, body }: { readonly id: string; readonly seconds: number; readonly body: string },
): Record<string, string> {
  const key = Buffer.from(secret.slice(prefix.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
  return {
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1,${signature}`,
  };
}
