import { type Command, Option } from 'commander';
import {
  type Webhook,
  WebhookCreated,
  WebhookDelivery,
  WebhookDeliveryList,
  WebhookEvent,
  WebhookList,
} from '../../contracts/webhook.ts';
import { jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { exitCodes } from '../errors.ts';
import type { Printer } from '../render/print.ts';
import type { Shell } from '../shell.ts';

interface WebhookOptions extends CommonOptions {
  readonly event: readonly WebhookEvent[];
}

function printWebhooks(webhooks: readonly Webhook[], print: Printer): void {
  const rows = webhooks.map(({ webhook_id, url, events }) => [webhook_id, events.join(' '), url]);
  print.table([{ header: 'WEBHOOK' }, { header: 'EVENTS' }, { header: 'URL' }], rows);
}

function printDeliveries(deliveries: readonly WebhookDelivery[], print: Printer): void {
  const rows = deliveries.map((one) => [
    one.created_at,
    one.event,
    one.state,
    String(one.attempts),
    one.status === null ? '' : String(one.status),
    one.error ?? '',
  ]);
  const headers = ['AT', 'EVENT', 'STATE', 'TRIES', 'STATUS', 'ERROR'];
  print.table(
    headers.map((header) => ({ header })),
    rows,
  );
}

function pathOf(id: string, rest = ''): string {
  return `/v1/webhooks/${encodeURIComponent(id)}${rest}`;
}

async function list(options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.get('/v1/webhooks', WebhookList, { limit: 200 });
  if (json) return print.json(text);
  printWebhooks(value.items, print);
}

async function add(url: string, { event, ...options }: WebhookOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.post('/v1/webhooks', WebhookCreated, jsonBody({ url, events: event }));
  if (json) return print.json(text);
  printWebhooks([value], print);
  print.line(`secret ${value.secret}`);
  print.remark('the secret is shown once; deliveries are signed with it');
}

async function remove(id: string, options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print } = await openSession(options, shell);
  await client.remove(pathOf(id));
  print.remark(`${id} is told nothing more`);
}

async function test(id: string, options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.post(pathOf(id, '/test'), WebhookDelivery, {
    text: '',
    type: 'application/json',
  });
  if (json) print.json(text);
  else printDeliveries([value], print);
  if (value.state !== 'delivered') shell.exitWith(exitCodes.failed);
}

async function log(id: string, options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.get(pathOf(id, '/deliveries'), WebhookDeliveryList, { limit: 50 });
  if (json) return print.json(text);
  printDeliveries(value.items, print);
}

/** `capstan webhooks`: who is told of what happens in the project. */
export function registerWebhooksCommand(program: Command, shell: Shell): void {
  const webhooks = program.command('webhooks').description('tell others what happens in the project');
  const listed = webhooks
    .command('ls', { isDefault: true })
    .description('list who is told what')
    .action((options: CommonOptions) => list(options, shell));
  const added = webhooks
    .command('add')
    .description('tell an address; the secret is shown once')
    .argument('<url>', 'where a POST goes')
    .addOption(
      new Option('--event <events...>', 'what it is told')
        .choices(WebhookEvent.options)
        .default(WebhookEvent.options),
    )
    .addHelpText('after', '\nExample:\n  capstan webhooks add http://127.0.0.1:9000/hook --event run.ended')
    .action((url: string, options: WebhookOptions) => add(url, options, shell));
  const byId = (name: string, description: string, work: typeof remove): Command =>
    webhooks
      .command(name)
      .description(description)
      .argument('<webhook>', 'its id')
      .action((id: string, options: CommonOptions) => work(id, options, shell));
  const others = [
    byId('rm', 'tell it nothing more', remove),
    byId('test', 'tell it something now; fails when it is not taken', test),
    byId('log', 'list what it was told', log),
  ];
  for (const command of [listed, added, ...others]) addCommonOptions(command);
}
