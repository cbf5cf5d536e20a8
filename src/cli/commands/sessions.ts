import type { Command } from 'commander';
import { SessionList, SessionsRevoked } from '../../contracts/session.ts';
import { jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { UsageError } from '../errors.ts';
import { formatAge } from '../render/amounts.ts';
import type { Column } from '../render/table.ts';
import type { Shell } from '../shell.ts';

interface UserOptions extends CommonOptions {
  readonly user?: string;
}

const columns: readonly Column[] = [
  { header: 'SESSION' },
  { header: 'WHO' },
  { header: 'NAME', shrinks: true },
  { header: 'OPENED', align: 'right' },
  { header: 'CHECKED', align: 'right' },
];

async function list({ user, ...options }: UserOptions, shell: Shell): Promise<void> {
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
  print.table(columns, rows);
}

async function revoke(
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
    .action((options: UserOptions) => list(options, shell));
  addCommonOptions(listed);
  const revoked = sessions
    .command('revoke')
    .description('end a session, or all of a user, within 5 s everywhere')
    .argument('[session-id]', 'as `sessions ls` shows it')
    .option(...user)
    .addHelpText('after', '\nExample:\n  capstan sessions revoke --user anna@example.org')
    .action((id: string | undefined, options: UserOptions) => revoke(id, options, shell));
  addCommonOptions(revoked);
}
