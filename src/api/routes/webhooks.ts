/** Webhooks of a project. */
import { ListQuery } from '@capstan/core/contracts/primitives';
import {
  Webhook,
  WebhookCreated,
  WebhookDelivery,
  WebhookDeliveryList,
  WebhookList,
  WebhookRequest,
} from '@capstan/core/contracts/webhook';
import {
  createWebhook,
  listDeliveriesOf,
  listWebhooksOf,
  removeWebhook,
  replaceWebhook,
  testWebhook,
} from '../../use-cases/webhooks/webhooks.ts';
import { json } from '../input.ts';
import { IdPath } from '../parameters.ts';
import { type Route, route } from '../route.ts';

export const webhookRoutes: readonly Route[] = [
  route('POST /v1/webhooks', {
    operation: 'create_webhook',
    tag: 'webhooks',
    summary: 'Create a webhook; only this answer shows its secret',
    description:
      'Capstan sends each new event as a POST of `{type, at, data}`, at least once. It makes up to nine attempts within a day until the answer is 2xx. A redirect counts as a failure. The headers `webhook-id`, `webhook-timestamp` and `webhook-signature` follow Standard Webhooks: the signature is `v1,` and the HMAC-SHA-256, in base64, of `<id>.<timestamp>.<body>`. `ALLOWED_CIDRS` limits the addresses, as for instances.',
    scope: 'admin',
    body: json(WebhookRequest),
    responses: { 201: WebhookCreated },
    errors: ['limit_reached'],
    result: (ctx, { caller, body }) => createWebhook(ctx, caller, body),
  }),
  route('GET /v1/webhooks', {
    operation: 'list_webhooks',
    tag: 'webhooks',
    summary: 'List webhooks',
    scope: 'admin',
    query: ListQuery.strict(),
    responses: { 200: WebhookList },
    result: (ctx, { caller, query }) => listWebhooksOf(ctx, caller, query),
  }),
  route('PUT /v1/webhooks/{id}', {
    operation: 'replace_webhook',
    tag: 'webhooks',
    summary: 'Replace the url and the events of a webhook; its secret stays',
    scope: 'admin',
    params: IdPath,
    body: json(WebhookRequest),
    responses: { 200: Webhook },
    result: (ctx, { caller, params, body }) => replaceWebhook(ctx, { caller, id: params.id }, body),
  }),
  route('DELETE /v1/webhooks/{id}', {
    operation: 'delete_webhook',
    tag: 'webhooks',
    summary: 'Delete a webhook and its deliveries',
    scope: 'admin',
    params: IdPath,
    responses: { 204: 'empty' },
    handle: async (ctx, { caller, params }) => {
      await removeWebhook(ctx, caller, params.id);
      return { status: 204 };
    },
  }),
  route('POST /v1/webhooks/{id}/test', {
    operation: 'test_webhook',
    tag: 'webhooks',
    summary: 'Send one test event to a webhook now, and show its answer',
    scope: 'admin',
    params: IdPath,
    responses: { 200: WebhookDelivery },
    result: (ctx, { caller, params }) => testWebhook(ctx, caller, params.id),
  }),
  route('GET /v1/webhooks/{id}/deliveries', {
    operation: 'list_webhook_deliveries',
    tag: 'webhooks',
    summary: 'List the deliveries of a webhook, newest first, for 30 days',
    scope: 'admin',
    params: IdPath,
    query: ListQuery.strict(),
    responses: { 200: WebhookDeliveryList },
    result: (ctx, { caller, params, query }) =>
      listDeliveriesOf(ctx, { caller, webhookId: params.id }, query),
  }),
];
