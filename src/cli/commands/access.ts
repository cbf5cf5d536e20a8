/** Access to the API: `keys`, `login`, browser `sessions`, the `audit` log, and `projects`. */
import { setTimeout as delay } from 'node:timers/promises';
import {
  Erasure,
  type Key,
  KeyCreated,
  KeyList,
  KeyRevoked,
  Project,
  ProjectList,
  Scope,
} from '@capstan/core/contracts/access';
import { CallOnBudget, StepOnBudget } from '@capstan/core/contracts/decision';
import { erasureCounted } from '@capstan/core/contracts/limits';
import { SessionList, SessionsRevoked } from '@capstan/core/contracts/sign-in';
import { type ApiAnswer, type ApiClient, download, getAll, jsonBody, path } from '../client/api-client.ts';
import { createLoginLink, type Session } from '../client/session.ts';
import { command, group, listed, oneOf, parsed, procedure, required } from '../command.ts';
import { exitCodes, UnreachableError, UsageError } from '../errors.ts';
import { collectText, readDurationMs, readItem } from '../input/arguments.ts';
import { readMoment } from '../input/run-filter.ts';
import { formatAge, formatCounts, formatDailyLimit } from '../render/formats.ts';
import type { Columns, Printer } from '../render/print.ts';

function stateOf({ revoked_at, expires_at }: Key, now: number): string {
  if (revoked_at !== null) return 'revoked';
  return expires_at !== null && Date.parse(expires_at) <= now ? 'expired' : 'valid';
}

const keyTable: Columns<Key> = [
  ['KEY', 'key_id'],
  ['NAME', 'name', 'shrinks'],
  ['STATE', (key, { now }) => stateOf(key, now)],
  ['SCOPES', ({ scopes }) => scopes.join(' '), 'shrinks'],
  ['PROJECTS', ({ projects }) => projects.join(' '), 'shrinks'],
  ['CREATED', ({ created_at }, { now }) => formatAge(created_at, now), 'right'],
];

function showRevoked(keyId: string, { key_ids, going_on }: KeyRevoked, print: Printer): void {
  print.line(`revoked ${[keyId, ...key_ids.filter((id) => id !== keyId)].join(', ')}`);
  const left = [
    ...going_on.webhooks.map(({ webhook_id, project_id, url }) => `  ${webhook_id}  ${project_id}  ${url}`),
    ...going_on.hooks.map(({ hook_id, project_id, name }) => `  ${hook_id}  ${project_id}  ${name}`),
    ...going_on.schedules.map(
      ({ schedule_id, project_id, name }) => `  ${schedule_id}  ${project_id}  ${name}`,
    ),
  ];
  if (left.length === 0) return;
  print.remark('their webhooks, hooks and schedules continue until you delete them:');
  for (const line of left) print.remark(line);
}

/** @throws UsageError that names the projects when the calling key has several */
async function findOnlyProject(client: ApiClient): Promise<string> {
  const { items } = (await getAll(client, '/v1/projects', ProjectList)).value;
  const [only] = items;
  if (only !== undefined && items.length === 1) return only.project_id;
  const names = items.map(({ project_id, name }) => `${project_id} (${name})`).join(', ');
  throw new UsageError(`name a project with --for; the key has ${names}`);
}

const keyArgument = { '<key-id>': 'as `keys ls` shows it' } as const;

export const registerKeysCommand = group('keys', 'list, make, rotate and revoke API keys', [
  command('ls', {
    about: 'list keys',
    example: 'capstan keys ls',
    call: ({ client }) => client.get('/v1/keys', KeyList, { limit: 200 }),
    show: listed(keyTable),
  }),
  command('create', {
    about: 'make a key; it is printed once',
    example: 'capstan keys create ci --scope run:write --scope run:read',
    args: { '<name>': 'what it is for' },
    options: {
      '-s, --scope <scope>': required(
        parsed(
          `a scope (repeatable): ${Scope.options.join(', ')}. Three also take :NAME or :PREFIX*: capability:register, capability:call, run:write`,
          collectText,
        ),
      ),
      '--for <project>': parsed(
        'a project it is for (repeatable; default: the current one, else the only one)',
        collectText,
      ),
      '--expires <duration>': parsed('stops working after this long, such as 30d', readDurationMs),
      '--requests-per-minute <n>': parsed('at most so many requests', readItem),
      '--tokens-per-minute <n>': parsed('at most so many tokens of direct calls', readItem),
      '--on-budget <way>': oneOf('the end of its direct calls without room', CallOnBudget.options),
    },
    call: async ({ client, shell }, { name, scope: scopes, for: chosen, expires, ...rates }) => {
      const projects = chosen ?? [client.connection.project ?? (await findOnlyProject(client))];
      const expires_at = expires === undefined ? undefined : new Date(shell.now() + expires).toISOString();
      const { requestsPerMinute: requests_per_minute, tokensPerMinute: tokens_per_minute } = rates;
      const { onBudget: on_budget } = rates;
      const limits = { requests_per_minute, tokens_per_minute, on_budget };
      return client.post('/v1/keys', KeyCreated, jsonBody({ name, projects, scopes, expires_at, ...limits }));
    },
    show: ({ key, key_id }, { print }) => {
      print.line(key);
      print.remark(`key ${key_id}; it is not shown again`);
    },
  }),
  command('rotate', {
    about: 'give a key another secret; it is printed once',
    example: 'capstan keys rotate KEY_ID --overlap 1h',
    args: keyArgument,
    options: {
      '--overlap <duration>': parsed('how long the former secret works on (default: 1d)', readDurationMs),
    },
    call: ({ client }, { keyId, overlap }) => {
      const body = jsonBody(overlap === undefined ? {} : { overlap_s: Math.round(overlap / 1_000) });
      return client.post(path`/v1/keys/${keyId}/rotate`, KeyCreated, body);
    },
    show: ({ key, key_id }, { print }) => {
      print.line(key);
      print.remark(`key ${key_id}; its new secret is not shown again`);
    },
  }),
  command('revoke', {
    about: 'make a key stop working, and all keys that it made',
    example: 'capstan keys revoke KEY_ID',
    args: keyArgument,
    call: ({ client }, { keyId }) => client.remove(path`/v1/keys/${keyId}`),
    show: (text, { print }, { keyId }) => showRevoked(keyId, KeyRevoked.parse(JSON.parse(text)), print),
  }),
]);

export const registerLoginCommand = command('login', {
  about: 'print a link that signs a browser in to the console',
  example: 'capstan login',
  call: async ({ client }) => {
    const link = await createLoginLink(client);
    return { value: link, text: JSON.stringify(link) };
  },
  show: ({ url }, { print }) => {
    print.line(url);
    print.remark('it signs one browser in, once, within 10 minutes');
  },
});

const sessionTable: Columns<SessionList['items'][number]> = [
  ['SESSION', 'session_id'],
  ['WHO', 'key_id'],
  ['NAME', 'name', 'shrinks'],
  ['OPENED', ({ opened_at }, { now }) => formatAge(opened_at, now), 'right'],
  ['CHECKED', ({ checked_at }, { now }) => (checked_at === null ? '' : formatAge(checked_at, now)), 'right'],
];

const userOption = {
  '--user <user>': 'an e-mail address, a subject at the provider, or the id of a person or key',
} as const;

export const registerSessionsCommand = group('sessions', 'list and end sessions of browsers', [
  command('ls', {
    about: 'list the browsers that are signed in',
    example: 'capstan sessions ls',
    options: userOption,
    call: ({ client }, { user }) => client.get('/v1/sessions', SessionList, { limit: 200, user }),
    show: listed(sessionTable),
  }),
  procedure('revoke', {
    about: 'end a session, or all of a user, within 5 s everywhere',
    example: 'capstan sessions revoke --user anna@example.org',
    args: { '[session-id]': 'as `sessions ls` shows it' },
    options: userOption,
    before: ({ sessionId, user }) => {
      if ((sessionId === undefined) === (user === undefined))
        throw new UsageError('name a session, or a user by --user');
    },
    run: async ({ client, print, json }, { sessionId, user }) => {
      if (sessionId !== undefined) {
        await client.remove(path`/v1/sessions/${sessionId}`);
        return json ? undefined : print.line(`ended ${sessionId}`);
      }
      const { value, text } = await client.post('/v1/sessions/revoke', SessionsRevoked, jsonBody({ user }));
      if (json) return print.json(text);
      print.line(`ended ${value.revoked} ${value.revoked === 1 ? 'session' : 'sessions'} of ${user}`);
      if (value.revoked > 0) print.remark('they are out within 5 s, and may sign in again');
    },
  }),
]);

export const registerAuditCommand = group('audit', 'what was done to keys, people, limits and the like', [
  procedure('export', {
    about: 'print the audit log, oldest first, an entry of JSON a line',
    example: 'capstan audit export --from 2026-01-01 --to 2026-02-01 > audit.ndjson',
    options: {
      '--from <moment>': parsed('from this day or moment on', readMoment),
      '--to <moment>': parsed('up to, and without, this day or moment', readMoment),
      '--subject <id>': 'only what was done to this key, person, skill, …',
    },
    run: ({ client, shell }, { from, to, subject }) => {
      const headers = { accept: 'application/x-ndjson' };
      return download(client, '/v1/audit', { query: { from, to, subject }, headers, to: shell.stdout });
    },
  }),
]);

// `projects`: waits for the end of an erasure. Ctrl-C ends only the waiting.

const pollMs = 500;

function erasurePath(projectId: string): string {
  return path`/v1/projects/${projectId}/erasure`;
}

/** The remaining rows and files, on one line. */
function describeLeft({ left }: Erasure): string {
  const counts = formatCounts(left, erasureCounted).map((line) => line.trim().replaceAll(/ +/g, ' '));
  return counts.length === 0 ? 'left: the ledger and the audit log' : `left: ${counts.join(', ')}`;
}

function showEnd({ print, json }: Session, projectId: string, { value, text }: ApiAnswer<Erasure>): void {
  if (json) {
    print.json(text);
    return;
  }
  print.line(`${projectId} is erased; ledger and audit log call it ${value.pseudonym}`);
  const lines = formatCounts(value.deleted);
  if (lines.length > 0) print.lines(['deleted:', ...lines]);
}

/** @param first the current state @returns the exit code */
async function watchErasure(session: Session, projectId: string, first: ApiAnswer<Erasure>): Promise<number> {
  const { client, print, json, shell } = session;
  const stop = new AbortController();
  const release = shell.onInterrupt(() => stop.abort());
  try {
    let answer = first;
    let told = '';
    while (answer.value.state !== 'erased') {
      const line = describeLeft(answer.value);
      if (line !== told && !json) print.remark(line);
      told = line;
      await delay(pollMs, undefined, { signal: stop.signal });
      answer = await client.get(erasurePath(projectId), Erasure);
    }
    showEnd(session, projectId, answer);
    return exitCodes.ok;
  } catch (thrown) {
    if (!stop.signal.aborted) throw thrown;
    print.remark(`The erasure continues. Watch again: capstan projects erase ${projectId} --yes`);
    return exitCodes.interrupted;
  } finally {
    release();
  }
}

/** @throws UsageError unless the erasure is in progress or done */
async function showWhatGoes({ client, print, json }: Session, projectId: string): Promise<void> {
  const { value, text } = await client.get(erasurePath(projectId), Erasure);
  const { state, left, requested_at } = value;
  if (json) print.json(text);
  else if (state === 'none') {
    const lines = formatCounts(left, erasureCounted);
    print.line(lines.length === 0 ? `${projectId} is empty` : `would be erased with ${projectId}:`);
    print.lines(lines);
  } else
    print.line(`${projectId} ${state === 'erased' ? 'is erased' : `is being erased since ${requested_at}`}`);
  if (state === 'none') throw new UsageError('erasing cannot be undone: add --yes to do it');
}

async function erase(session: Session, projectId: string): Promise<void> {
  const { text } = await session.client.remove(path`/v1/projects/${projectId}`);
  const parsed = Erasure.safeParse(JSON.parse(text));
  if (!parsed.success)
    throw new UnreachableError(`the answer is none that this version of capstan understands: ${text}`);
  session.shell.exitWith(await watchErasure(session, projectId, { value: parsed.data, text }));
}

const projectTable: Columns<Project> = [
  ['PROJECT', 'project_id'],
  ['NAME', 'name', 'shrinks'],
  ['TIMEZONE', 'timezone'],
  ['DAILY LIMIT', ({ daily_limit_usd }) => formatDailyLimit(daily_limit_usd), 'right'],
  ['STRICT', ({ strict }) => (strict ? 'yes' : 'no')],
  ['ON BUDGET', ({ on_budget }) => on_budget ?? ''],
  ['CREATED', ({ created_at }, { now }) => formatAge(created_at, now), 'right'],
];

export const registerProjectsCommand = group('projects', 'list, change and erase projects', [
  command('ls', {
    about: 'list the projects of the key',
    example: 'capstan projects ls',
    isDefault: true,
    call: ({ client }) => getAll(client, '/v1/projects', ProjectList),
    show: listed(projectTable),
  }),
  command('set', {
    about:
      'change its time zone, or how it treats requests that a model would not get whole and calls without room',
    example: 'capstan projects set PROJECT_ID --strict yes',
    args: { '<project-id>': 'as `projects ls` shows it' },
    options: {
      '--strict <yes|no>': oneOf('every request is as with X-Capstan-Strict: true', ['yes', 'no']),
      '--on-budget <way>': oneOf('the end of calls whose budgets have no more room; default: the defaults', [
        ...StepOnBudget.options,
        'default',
      ]),
      '-z, --timezone <zone>': 'the zone of its days from now on, such as Europe/Berlin',
    },
    call: ({ client }, { projectId, strict, onBudget, timezone }) => {
      if (strict === undefined && onBudget === undefined && timezone === undefined)
        throw new UsageError('name a setting: --strict yes, --on-budget stop, or --timezone Europe/Berlin');
      const settings = {
        strict: strict === undefined ? undefined : strict === 'yes',
        on_budget: onBudget === 'default' ? null : onBudget,
        timezone,
      };
      return client.put(path`/v1/projects/${projectId}/settings`, Project, jsonBody(settings));
    },
    show: ({ project_id, strict, on_budget, timezone }, { print }) =>
      print.line(
        `${project_id} is ${strict ? 'strict' : 'not strict'}; on budget: ${on_budget ?? 'the defaults'}; days of ${timezone}`,
      ),
  }),
  procedure('erase', {
    about:
      'delete a project and everything in it, and wait for the end (needs a key with the scope operator that holds another project)',
    example: 'capstan projects erase PROJECT_ID --yes',
    args: { '<project-id>': 'as `projects ls` shows it' },
    options: { '--yes': 'do it; without, only list what would go' },
    run: (session, { projectId, yes }) =>
      yes === true ? erase(session, projectId) : showWhatGoes(session, projectId),
  }),
]);
