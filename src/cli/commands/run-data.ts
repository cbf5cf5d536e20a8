/**
 * What runs leave: the files of their jobs (`media`), and results that steps with `cache` take instead of paying
 * again.
 */
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import type { Command } from 'commander';
import { type CacheEntry, CacheList, CacheRemoved } from '../../contracts/cache.ts';
import { Job, type MediaPath, parseMediaReference } from '../../contracts/media.ts';
import { downloadMedia, uploadMedia } from '../client/media-transfer.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { UsageError } from '../errors.ts';
import { readLimit } from '../input/arguments.ts';
import { formatBytes, formatUsd } from '../render/formats.ts';
import type { Column } from '../render/print.ts';
import type { Shell } from '../shell.ts';

interface GetOptions extends CommonOptions {
  readonly output?: string;
}

function readReference(text: string): MediaPath {
  const path = parseMediaReference(text);
  if (path === null) throw new UsageError(`"${text}" is not of the form media://JOB_ID/FILE`);
  return path;
}

async function get(reference: string, options: GetOptions, shell: Shell): Promise<void> {
  const from = readReference(reference);
  const target = options.output ?? basename(from.file);
  if (options.output === undefined && existsSync(target)) {
    throw new UsageError(`${target} exists; say with -o where to write`);
  }
  const session = await openSession(options, shell);
  await downloadMedia(session, from, target);
  if (target === '-') return;
  if (session.json) session.print.json(JSON.stringify({ reference, file: target }));
  else session.print.line(target);
}

const fileColumns: readonly Column[] = [
  { header: 'FILE', shrinks: true },
  { header: 'SIZE', align: 'right' },
  { header: 'TYPE' },
];

async function listFiles(jobId: string, options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.get(`/v1/jobs/${encodeURIComponent(jobId)}`, Job);
  if (json) return print.json(text);
  if (value.artifacts.length === 0) return print.remark('no files');
  print.table(
    fileColumns,
    value.artifacts.map(({ reference, size, content_type }) => [reference, formatBytes(size), content_type]),
  );
}

async function put(file: string, reference: string, options: CommonOptions, shell: Shell): Promise<void> {
  const to = readReference(reference);
  const session = await openSession(options, shell);
  const text = await uploadMedia(session, file, to);
  if (session.json) session.print.json(text);
  else session.print.line(reference);
}

export function registerMediaCommand(program: Command, shell: Shell): void {
  const media = program.command('media').description('list, fetch and store media files');
  const listing = media
    .command('ls')
    .description('list the files of a job')
    .argument('<job>', 'id of the job; `capstan show RUN --json` says it as job_id')
    .action((jobId: string, options: CommonOptions) => listFiles(jobId, options, shell));
  addCommonOptions(listing);
  const getting = media
    .command('get')
    .description('download a file')
    .argument('<reference>', 'media://JOB_ID/FILE')
    .option('-o, --output <file>', 'where to write, - for stdout (default: its own name)')
    .addHelpText('after', '\nExample:\n  capstan media get media://JOB_ID/out.mp4 -o out.mp4')
    .action((reference: string, options: GetOptions) => get(reference, options, shell));
  addCommonOptions(getting);
  const putting = media
    .command('put')
    .description('upload a file to a job')
    .argument('<file>', 'local file, - for stdin')
    .argument('<reference>', 'media://JOB_ID/FILE')
    .addHelpText('after', '\nExample:\n  capstan media put clip.mp4 media://JOB_ID/clip.mp4')
    .action((file: string, reference: string, options: CommonOptions) =>
      put(file, reference, options, shell),
    );
  addCommonOptions(putting);
}

interface WhichOptions extends CommonOptions {
  readonly capability?: string;
  readonly pipeline?: string;
  readonly run?: string;
}

interface ListOptions extends WhichOptions {
  readonly limit: number;
}

interface RemoveOptions extends WhichOptions {
  readonly all?: boolean;
}

const resultColumns: readonly Column[] = [
  { header: 'CAPABILITY', shrinks: true },
  { header: 'RUN' },
  { header: 'STEP', shrinks: true },
  { header: 'COST', align: 'right' },
  { header: 'FILES', align: 'right' },
  { header: 'STORED' },
  { header: 'EXPIRES' },
  { header: 'KEY' },
];

function toRow(entry: CacheEntry): string[] {
  const step = entry.item === undefined ? entry.step_id : `${entry.step_id}[${entry.item}]`;
  const { capability, run_id, cost_usd, files, stored_at, expires_at, key } = entry;
  return [capability, run_id, step, formatUsd(cost_usd), String(files), stored_at, expires_at, key];
}

function whichOf({ capability, pipeline, run: run_id }: WhichOptions) {
  return { capability, pipeline, run_id };
}

async function listResults(options: ListOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const query = { ...whichOf(options), limit: options.limit };
  const { value, text } = await client.get('/v1/cache', CacheList, query);
  if (json) return print.json(text);
  if (value.items.length === 0) return print.remark('nothing is kept');
  print.table(resultColumns, value.items.map(toRow));
  if (value.next_cursor !== null) print.remark(`the newest ${options.limit}`);
}

async function remove(key: string | undefined, options: RemoveOptions, shell: Shell): Promise<void> {
  const which = Object.entries({ key, ...whichOf(options) }).filter(([, value]) => value !== undefined);
  if (which.length === 0 && options.all !== true) {
    throw new UsageError('say which: a key, --capability, --pipeline, --run, or --all');
  }
  const { client, print, json } = await openSession(options, shell);
  const query = new URLSearchParams(which as [string, string][]).toString();
  const text = await client.remove(query === '' ? '/v1/cache' : `/v1/cache?${query}`);
  if (json) return print.json(text);
  const { removed } = CacheRemoved.parse(JSON.parse(text));
  print.remark(`${removed} ${removed === 1 ? 'result is' : 'results are'} kept no longer`);
}

function addWhich(command: Command): Command {
  return command
    .option('--capability <name>', 'only of this capability')
    .option('--pipeline <name>', 'only of runs of this pipeline')
    .option('--run <id>', 'only of this run');
}

/** `capstan cache`: results that steps with `cache` take instead of paying again. */
export function registerCacheCommand(program: Command, shell: Shell): void {
  const cache = program.command('cache').description('look at results that equal calls take, or remove them');
  const listed = addWhich(cache.command('ls', { isDefault: true }).description('list them, newest first'))
    .option('-n, --limit <n>', 'at most so many', readLimit, 20)
    .action((options: ListOptions) => listResults(options, shell));
  const removed = addWhich(cache.command('rm').description('keep them no longer'))
    .argument('[key]', 'of one')
    .option('--all', 'all of the project')
    .addHelpText('after', '\nExample:\n  capstan cache rm --capability thumbnail')
    .action((key: string | undefined, options: RemoveOptions) => remove(key, options, shell));
  for (const command of [listed, removed]) addCommonOptions(command);
}
