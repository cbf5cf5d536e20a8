import type { Command } from 'commander';
import { type CacheEntry, CacheList, CacheRemoved } from '../../contracts/cache.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { UsageError } from '../errors.ts';
import { readLimit } from '../input/option-values.ts';
import { formatUsd } from '../render/amounts.ts';
import type { Column } from '../render/table.ts';
import type { Shell } from '../shell.ts';

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

const columns: readonly Column[] = [
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

async function list(options: ListOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const query = { ...whichOf(options), limit: options.limit };
  const { value, text } = await client.get('/v1/cache', CacheList, query);
  if (json) return print.json(text);
  if (value.items.length === 0) return print.remark('nothing is kept');
  print.table(columns, value.items.map(toRow));
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
    .action((options: ListOptions) => list(options, shell));
  const removed = addWhich(cache.command('rm').description('keep them no longer'))
    .argument('[key]', 'of one')
    .option('--all', 'all of the project')
    .addHelpText('after', '\nExample:\n  capstan cache rm --capability thumbnail')
    .action((key: string | undefined, options: RemoveOptions) => remove(key, options, shell));
  for (const command of [listed, removed]) addCommonOptions(command);
}
