/** `projects`: lists them, and erases one, which is watched to its end. Ctrl-C only stops the watching. */
import { setTimeout as delay } from 'node:timers/promises';
import { Erasure, type Project, ProjectList } from '../../contracts/access.ts';
import { erasureCounted } from '../../contracts/bounds.ts';
import { type ApiAnswer, getAll, path } from '../client/api-client.ts';
import type { Session } from '../client/session.ts';
import { command, group, listed, procedure } from '../command.ts';
import { exitCodes, UnreachableError, UsageError } from '../errors.ts';
import { formatAge, formatCounts, formatDailyLimit } from '../render/formats.ts';
import type { Table } from '../render/print.ts';

const pollMs = 500;

function erasurePath(projectId: string): string {
  return path`/v1/projects/${projectId}/erasure`;
}

/** What is left, on one line. */
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

/** @param first how far it is now @returns the exit code */
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
    print.remark(`The erasure goes on. Watch again: capstan projects erase ${projectId} --yes`);
    return exitCodes.interrupted;
  } finally {
    release();
  }
}

/** @throws UsageError unless it is under way or done already */
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
  if (state === 'none') throw new UsageError('erasing cannot be undone: say --yes to do it');
}

async function erase(session: Session, projectId: string): Promise<void> {
  const { text } = await session.client.remove(path`/v1/projects/${projectId}`);
  const parsed = Erasure.safeParse(JSON.parse(text));
  if (!parsed.success)
    throw new UnreachableError(`the answer is none that this version of capstan understands: ${text}`);
  session.shell.exitWith(await watchErasure(session, projectId, { value: parsed.data, text }));
}

const projectTable: Table<Project> = [
  ['PROJECT', 'project_id'],
  ['NAME', 'name', 'shrinks'],
  ['TIMEZONE', 'timezone'],
  ['DAILY LIMIT', ({ daily_limit_usd }) => formatDailyLimit(daily_limit_usd), 'right'],
  ['CREATED', ({ created_at }, { now }) => formatAge(created_at, now), 'right'],
];

export const registerProjectsCommand = group('projects', 'list and erase projects', [
  command('ls', {
    about: 'list the projects of the key',
    example: 'capstan projects ls',
    isDefault: true,
    call: ({ client }) => getAll(client, '/v1/projects', ProjectList),
    show: listed(projectTable),
  }),
  procedure('erase', {
    about:
      'delete a project with all that is its own, and wait for the end (needs a key with the scope operator that holds another project)',
    example: 'capstan projects erase PROJECT_ID --yes',
    args: { '<project-id>': 'as `projects ls` shows it' },
    options: { '--yes': 'do it; without, it is only said what would go' },
    run: (session, { projectId, yes }) =>
      yes === true ? erase(session, projectId) : showWhatGoes(session, projectId),
  }),
]);
