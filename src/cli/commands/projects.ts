/** `projects`: lists them, and erases one, which is watched to its end. Ctrl-C only stops the watching. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import { Erasure, type Project, ProjectList } from '../../contracts/access.ts';
import { erasureCounted } from '../../contracts/bounds.ts';
import type { ApiAnswer } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession, type Session } from '../client/session.ts';
import { exitCodes, UnreachableError, UsageError } from '../errors.ts';
import { formatAge, formatCounts, formatUsd } from '../render/formats.ts';
import type { Column } from '../render/print.ts';
import type { Shell } from '../shell.ts';

// Watches the erasure of a project to its end. Ctrl-C only stops the watching.

const pollMs = 500;

function erasurePath(projectId: string): string {
  return `/v1/projects/${encodeURIComponent(projectId)}/erasure`;
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

interface EraseOptions extends CommonOptions {
  readonly yes?: boolean;
}

const columns: readonly Column[] = [
  { header: 'PROJECT' },
  { header: 'NAME', shrinks: true },
  { header: 'TIMEZONE' },
  { header: 'DAILY LIMIT', align: 'right' },
  { header: 'CREATED', align: 'right' },
];

async function list(options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const items: Project[] = [];
  let cursor: string | undefined;
  do {
    const { value } = await client.get('/v1/projects', ProjectList, { limit: 200, cursor });
    items.push(...value.items);
    cursor = value.next_cursor ?? undefined;
  } while (cursor !== undefined);
  if (json) return print.json(JSON.stringify({ items, next_cursor: null }));
  const now = shell.now();
  const rows = items.map(({ project_id, name, timezone, daily_limit_usd, created_at }) => [
    project_id,
    name,
    timezone,
    daily_limit_usd === 0 ? 'none' : formatUsd(daily_limit_usd),
    formatAge(created_at, now),
  ]);
  print.table(columns, rows);
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

async function erase(projectId: string, { yes, ...options }: EraseOptions, shell: Shell): Promise<void> {
  const session = await openSession(options, shell);
  if (yes !== true) return showWhatGoes(session, projectId);
  const text = await session.client.remove(`/v1/projects/${encodeURIComponent(projectId)}`);
  const parsed = Erasure.safeParse(JSON.parse(text));
  if (!parsed.success)
    throw new UnreachableError(`the answer is none that this version of capstan understands: ${text}`);
  shell.exitWith(await watchErasure(session, projectId, { value: parsed.data, text }));
}

export function registerProjectsCommand(program: Command, shell: Shell): void {
  const projects = program.command('projects').description('list and erase projects');
  const listed = projects
    .command('ls', { isDefault: true })
    .description('list the projects of the key')
    .addHelpText('after', '\nExample:\n  capstan projects ls')
    .action((options: CommonOptions) => list(options, shell));
  addCommonOptions(listed);
  const erased = projects
    .command('erase')
    .description(
      'delete a project with all that is its own, and wait for the end (needs a key with the scope operator that holds another project)',
    )
    .argument('<project-id>', 'as `projects ls` shows it')
    .option('--yes', 'do it; without, it is only said what would go')
    .addHelpText('after', '\nExample:\n  capstan projects erase PROJECT_ID --yes')
    .action((projectId: string, options: EraseOptions) => erase(projectId, options, shell));
  addCommonOptions(erased);
}
