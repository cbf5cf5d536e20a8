import type { Webhook, WebhookCreated, WebhookDelivery, WebhookEvent } from '@capstan/core/contracts/webhook';
import { queryOptions } from '@tanstack/react-query';
import { askPlainly } from './client.ts';

export function webhooksQuery() {
  return queryOptions({
    queryKey: ['webhooks'],
    queryFn: () => askPlainly<{ readonly items: readonly Webhook[] }>('/v1/webhooks?limit=200'),
  });
}

export function deliveriesQuery(webhookId: string) {
  return queryOptions({
    queryKey: ['webhooks', webhookId, 'deliveries'],
    queryFn: () =>
      askPlainly<{ readonly items: readonly WebhookDelivery[] }>(
        `/v1/webhooks/${webhookId}/deliveries?limit=50`,
      ),
  });
}

export function createWebhook(body: {
  readonly url: string;
  readonly events: readonly WebhookEvent[];
}): Promise<WebhookCreated> {
  return askPlainly('/v1/webhooks', { method: 'POST', body });
}

export function removeWebhook(webhookId: string): Promise<unknown> {
  return askPlainly(`/v1/webhooks/${webhookId}`, { method: 'DELETE' });
}

/** Sends a test delivery now. */
export function testWebhook(webhookId: string): Promise<WebhookDelivery> {
  return askPlainly(`/v1/webhooks/${webhookId}/test`, { method: 'POST' });
}
