import { type Command, Option } from 'commander';
import { KeyCreated, KeyList, KeyRevoked, Scope } from '../../contracts/access.ts';
import { jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { UsageError } from '../errors.ts';
import { collectText, readDurationMs } from '../input/option-values.ts';
import { formatAge } from '../render/amounts.ts';
import type { Column } from '../render/table.ts';
import type { Shell } from '../shell.ts';

interface CreateOptions extends CommonOptions {
  readonly scope: readonly string[];
  readonly for?: readonly string[];
  readonly expires?: number;
}

const columns: readonly Column[] = [
  { header: 'KEY' },
  { header: 'NAME', shrinks: true },
  { header: 'STATE' },
  { header: 'SCOPES', shrinks: true },
  { header: 'PROJECTS', shrinks: true },
  { header: 'CREATED', align: 'right' },
];

function stateOf(revokedAt: string | null, expiresAt: string | null, now: number): string {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && Date.parse(expiresAt) <= now ? 'expired' : 'valid';
}

async function list(options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.get('/v1/keys', KeyList, { limit: 200 });
  if (json) return print.json(text);
  const now = shell.now();
  const rows = value.items.map((key) => [
    key.key_id,
    key.name,
    stateOf(key.revoked_at, key.expires_at, now),
    key.scopes.join(' '),
    key.projects.join(' '),
    formatAge(key.created_at, now),
  ]);
  print.table(columns, rows);
}

async function create(name: string, options: CreateOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const own = client.connection.project;
  const projects = options.for ?? (own === undefined ? [] : [own]);
  if (projects.length === 0) throw new UsageError('say with --for which project the key is for');
  const { expires } = options;
  const expires_at = expires === undefined ? undefined : new Date(shell.now() + expires).toISOString();
  const body = jsonBody({ name, projects, scopes: options.scope, expires_at });
  const { value, text } = await client.post('/v1/keys', KeyCreated, body);
  if (json) return print.json(text);
  print.line(value.key);
  print.remark(`key ${value.key_id}; it is not shown again`);
}

async function rotate(
  keyId: string,
  { overlap, ...options }: CommonOptions & { readonly overlap?: number },
  shell: Shell,
): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const body = jsonBody(overlap === undefined ? {} : { overlap_s: Math.round(overlap / 1_000) });
  const path = `/v1/keys/${encodeURIComponent(keyId)}/rotate`;
  const { value, text } = await client.post(path, KeyCreated, body);
  if (json) return print.json(text);
  print.line(value.key);
  print.remark(`key ${value.key_id}; its new secret is not shown again`);
}

async function revoke(keyId: string, options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const text = await client.remove(`/v1/keys/${encodeURIComponent(keyId)}`);
  if (json) return print.json(text);
  const { key_ids, going_on } = KeyRevoked.parse(JSON.parse(text));
  print.line(`revoked ${[keyId, ...key_ids.filter((id) => id !== keyId)].join(', ')}`);
  const left = [
    ...going_on.webhooks.map(({ webhook_id, project_id, url }) => `  ${webhook_id}  ${project_id}  ${url}`),
    ...going_on.schedules.map(
      ({ schedule_id, project_id, name }) => `  ${schedule_id}  ${project_id}  ${name}`,
    ),
  ];
  if (left.length === 0) return;
  print.remark('what they made goes on until you delete it:');
  for (const line of left) print.remark(line);
}

function addCreate(keys: Command, shell: Shell): void {
  const command = keys
    .command('create')
    .description('make a key; it is printed once')
    .argument('<name>', 'what it is for')
    .addOption(
      new Option(
        '-s, --scope <scope>',
        `what it may do (repeatable): ${Scope.options.join(', ')}, capability:register:NAME, capability:register:PREFIX*`,
      )
        .argParser(collectText)
        .makeOptionMandatory(),
    )
    .option('--for <project>', 'a project it is for (repeatable; default: the current one)', collectText)
    .option('--expires <duration>', 'stops working after this long, such as 30d', readDurationMs)
    .addHelpText('after', '\nExample:\n  capstan keys create ci --scope run:write --scope run:read')
    .action((name: string, options: CreateOptions) => create(name, options, shell));
  addCommonOptions(command);
}

function addRotate(keys: Command, shell: Shell): void {
  const command = keys
    .command('rotate')
    .description('give a key another secret; it is printed once')
    .argument('<key-id>', 'as `keys ls` shows it')
    .option('--overlap <duration>', 'how long the former secret works on (default: 1d)', readDurationMs)
    .addHelpText('after', '\nExample:\n  capstan keys rotate KEY_ID --overlap 1h')
    .action((keyId: string, options: CommonOptions) => rotate(keyId, options, shell));
  addCommonOptions(command);
}

export function registerKeysCommand(program: Command, shell: Shell): void {
  const keys = program.command('keys').description('list, make, rotate and revoke API keys');
  const listed = keys
    .command('ls')
    .description('list keys')
    .addHelpText('after', '\nExample:\n  capstan keys ls')
    .action((options: CommonOptions) => list(options, shell));
  addCommonOptions(listed);
  addCreate(keys, shell);
  addRotate(keys, shell);
  const revoked = keys
    .command('revoke')
    .description('make a key stop working, and all keys that it made')
    .argument('<key-id>', 'as `keys ls` shows it')
    .addHelpText('after', '\nExample:\n  capstan keys revoke KEY_ID')
    .action((keyId: string, options: CommonOptions) => revoke(keyId, options, shell));
  addCommonOptions(revoked);
}
