/** `webhooks`: receivers of the project's events. */
import {
  type Webhook,
  WebhookCreated,
  WebhookDelivery,
  WebhookDeliveryList,
  WebhookEvent,
  WebhookList,
} from '@capstan/core/contracts/webhook';
import { emptyBody, jsonBody, path } from '../client/api-client.ts';
import { command, group, listed, procedure } from '../command.ts';
import { exitCodes } from '../errors.ts';
import type { Columns } from '../render/print.ts';

const webhookTable: Columns<Webhook> = [
  ['WEBHOOK', 'webhook_id'],
  ['EVENTS', ({ events }) => events.join(' ')],
  ['URL', 'url'],
];

const deliveryTable: Columns<WebhookDelivery> = [
  ['AT', 'created_at'],
  ['EVENT', 'event'],
  ['STATE', 'state'],
  ['TRIES', 'attempts'],
  ['STATUS', 'status'],
  ['ERROR', 'error'],
];

const webhookArgument = { '<webhook>': 'its id' } as const;

export const registerWebhooksCommand = group('webhooks', 'send events of the project to other systems', [
  command('ls', {
    about: 'list webhooks and their events',
    isDefault: true,
    call: ({ client }) => client.get('/v1/webhooks', WebhookList, { limit: 200 }),
    show: listed(webhookTable),
  }),
  command('add', {
    about: 'send events to an address; the secret is shown once',
    example: 'capstan webhooks add http://127.0.0.1:9000/hook --event run.ended',
    args: { '<url>': 'where a POST goes' },
    options: {
      '--event <events...>': {
        about: 'the events that it receives',
        choices: WebhookEvent.options,
        initial: WebhookEvent.options,
      },
    },
    call: ({ client }, { url, event: events }) =>
      client.post('/v1/webhooks', WebhookCreated, jsonBody({ url, events })),
    show: (webhook, { print }) => {
      print.table(webhookTable, [webhook]);
      print.line(`secret ${webhook.secret}`);
      print.remark('the secret is shown once; deliveries are signed with it');
    },
  }),
  procedure('rm', {
    about: 'delete a webhook; it receives no further events',
    args: webhookArgument,
    run: async ({ client, print }, { webhook }) => {
      await client.remove(path`/v1/webhooks/${webhook}`);
      print.remark(`${webhook} receives no further events`);
    },
  }),
  procedure('test', {
    about: 'send it a test event now; fails unless it is accepted',
    args: webhookArgument,
    run: async ({ client, print, json, shell }, { webhook }) => {
      const { value, text } = await client.post(
        path`/v1/webhooks/${webhook}/test`,
        WebhookDelivery,
        emptyBody,
      );
      if (json) print.json(text);
      else print.table(deliveryTable, [value]);
      if (value.state !== 'delivered') shell.exitWith(exitCodes.failed);
    },
  }),
  command('log', {
    about: 'list its deliveries',
    args: webhookArgument,
    call: ({ client }, { webhook }) =>
      client.get(path`/v1/webhooks/${webhook}/deliveries`, WebhookDeliveryList, { limit: 50 }),
    show: listed(deliveryTable),
  }),
]);
