/** Who may use the API: `keys`, `login` and the `sessions` of browsers, and by `audit` what was done to them. */

import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { KeyCreated, KeyList, KeyRevoked, Scope } from '../../contracts/access.ts';
import { SessionList, SessionsRevoked } from '../../contracts/sign-in.ts';
import { jsonBody, toUnreachable } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, createLoginLink, openSession } from '../client/session.ts';
import { UsageError } from '../errors.ts';
import { collectText, readDurationMs } from '../input/arguments.ts';
import { formatAge } from '../render/formats.ts';
import type { Column } from '../render/print.ts';
import type { Shell } from '../shell.ts';

interface CreateOptions extends CommonOptions {
  readonly scope: readonly string[];
  readonly for?: readonly string[];
  readonly expires?: number;
}

const keyColumns: readonly Column[] = [
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

async function listKeys(options: CommonOptions, shell: Shell): Promise<void> {
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
  print.table(keyColumns, rows);
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

async function revokeKeys(keyId: string, options: CommonOptions, shell: Shell): Promise<void> {
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
    .action((options: CommonOptions) => listKeys(options, shell));
  addCommonOptions(listed);
  addCreate(keys, shell);
  addRotate(keys, shell);
  const revoked = keys
    .command('revoke')
    .description('make a key stop working, and all keys that it made')
    .argument('<key-id>', 'as `keys ls` shows it')
    .addHelpText('after', '\nExample:\n  capstan keys revoke KEY_ID')
    .action((keyId: string, options: CommonOptions) => revokeKeys(keyId, options, shell));
  addCommonOptions(revoked);
}

async function login(options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const link = await createLoginLink(client);
  if (json) return print.json(JSON.stringify(link));
  print.line(link.url);
  print.remark('it signs one browser in, once, within 10 minutes');
}

export function registerLoginCommand(program: Command, shell: Shell): void {
  const command = program
    .command('login')
    .description('print a link that signs a browser in to the console')
    .addHelpText('after', '\nExample:\n  capstan login')
    .action((options: CommonOptions) => login(options, shell));
  addCommonOptions(command);
}

interface UserOptions extends CommonOptions {
  readonly user?: string;
}

const sessionColumns: readonly Column[] = [
  { header: 'SESSION' },
  { header: 'WHO' },
  { header: 'NAME', shrinks: true },
  { header: 'OPENED', align: 'right' },
  { header: 'CHECKED', align: 'right' },
];

async function listSessions({ user, ...options }: UserOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.get('/v1/sessions', SessionList, { limit: 200, user });
  if (json) return print.json(text);
  const now = shell.now();
  const rows = value.items.map(({ session_id, key_id, name, opened_at, checked_at }) => [
    session_id,
    key_id,
    name,
    formatAge(opened_at, now),
    checked_at === null ? '' : formatAge(checked_at, now),
  ]);
  print.table(sessionColumns, rows);
}

async function revokeSessions(
  id: string | undefined,
  { user, ...options }: UserOptions,
  shell: Shell,
): Promise<void> {
  if ((id === undefined) === (user === undefined))
    throw new UsageError('say which session, or with --user whose');
  const { client, print, json } = await openSession(options, shell);
  if (id !== undefined) {
    await client.remove(`/v1/sessions/${encodeURIComponent(id)}`);
    return json ? undefined : print.line(`ended ${id}`);
  }
  const { value, text } = await client.post('/v1/sessions/revoke', SessionsRevoked, jsonBody({ user }));
  if (json) return print.json(text);
  print.line(`ended ${value.revoked} ${value.revoked === 1 ? 'session' : 'sessions'} of ${user}`);
  if (value.revoked > 0) print.remark('they are out within 5 s, and may sign in again');
}

const user = [
  '--user <user>',
  'an e-mail address, a subject at the provider, or the id of a person or key',
] as const;

export function registerSessionsCommand(program: Command, shell: Shell): void {
  const sessions = program.command('sessions').description('list and end sessions of browsers');
  const listed = sessions
    .command('ls')
    .description('list the browsers that are signed in')
    .option(...user)
    .addHelpText('after', '\nExample:\n  capstan sessions ls')
    .action((options: UserOptions) => listSessions(options, shell));
  addCommonOptions(listed);
  const revoked = sessions
    .command('revoke')
    .description('end a session, or all of a user, within 5 s everywhere')
    .argument('[session-id]', 'as `sessions ls` shows it')
    .option(...user)
    .addHelpText('after', '\nExample:\n  capstan sessions revoke --user anna@example.org')
    .action((id: string | undefined, options: UserOptions) => revokeSessions(id, options, shell));
  addCommonOptions(revoked);
}

interface ExportOptions extends CommonOptions {
  readonly from?: string;
  readonly to?: string;
  readonly subject?: string;
}

/** A day begins at midnight UTC. */
function readMoment(text: string): string {
  const at = new Date(text);
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(at.getTime())) return at.toISOString();
  throw new InvalidArgumentError('Write a day or a moment, such as 2026-01-31 or 2026-01-31T08:00:00Z.');
}

async function exportAudit({ from, to, subject, ...options }: ExportOptions, shell: Shell): Promise<void> {
  const { client } = await openSession(options, shell);
  const headers = { accept: 'application/x-ndjson' };
  const response = await client.open('/v1/audit', { query: { from, to, subject }, headers });
  try {
    await pipeline(Readable.from(response.body ?? []), shell.stdout, { end: false });
  } catch (thrown) {
    throw toUnreachable(client.connection.url, thrown);
  }
}

export function registerAuditCommand(program: Command, shell: Shell): void {
  const audit = program.command('audit').description('what was done to keys, people, limits and the like');
  const command = audit
    .command('export')
    .description('print the audit log, oldest first, an entry of JSON a line')
    .option('--from <moment>', 'from this day or moment on', readMoment)
    .option('--to <moment>', 'up to, and without, this day or moment', readMoment)
    .option('--subject <id>', 'only what was done to this key, person, skill, …')
    .addHelpText(
      'after',
      '\nExample:\n  capstan audit export --from 2026-01-01 --to 2026-02-01 > audit.ndjson',
    )
    .action((options: ExportOptions) => exportAudit(options, shell));
  addCommonOptions(command);
}
