import type { Command } from 'commander';
import { Alias, AliasList, PipelineList } from '../../contracts/pipeline.ts';
import { jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { formatAge } from '../render/amounts.ts';
import type { Column } from '../render/table.ts';
import type { Shell } from '../shell.ts';

const pipelineColumns: readonly Column[] = [
  { header: 'PIPELINE' },
  { header: 'LATEST' },
  { header: 'STEPS', align: 'right' },
  { header: 'STORED', align: 'right' },
  { header: 'DESCRIPTION', shrinks: true },
];
const aliasColumns: readonly Column[] = [
  { header: 'ALIAS' },
  { header: 'VERSION' },
  { header: 'SINCE', align: 'right' },
];

function pathOf(pipeline: string, rest: string): string {
  return `/v1/pipelines/${encodeURIComponent(pipeline)}${rest}`;
}

async function list(options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.get('/v1/pipelines', PipelineList, { limit: 200 });
  if (json) return print.json(text);
  if (value.items.length === 0) return print.remark('no pipelines; store one with `capstan submit FILE`');
  const now = shell.now();
  const rows = value.items.map((item) => [
    item.pipeline,
    item.latest_version,
    String(item.steps),
    formatAge(item.created_at, now),
    item.description ?? '',
  ]);
  print.table(pipelineColumns, rows);
}

async function listAliases(pipeline: string, options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.get(pathOf(pipeline, '/aliases'), AliasList);
  if (json) return print.json(text);
  const now = shell.now();
  print.table(
    aliasColumns,
    value.items.map(({ alias, version, updated_at }) => [alias, version, formatAge(updated_at, now)]),
  );
}

interface AliasTarget {
  readonly pipeline: string;
  readonly alias: string;
  readonly version: string;
}

async function setAlias(
  { pipeline, alias, version }: AliasTarget,
  options: CommonOptions,
  shell: Shell,
): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const path = pathOf(pipeline, `/aliases/${encodeURIComponent(alias)}`);
  const { value, text } = await client.put(path, Alias, jsonBody({ version }));
  if (json) return print.json(text);
  print.line(`${pipeline}@${value.alias} is ${value.version}`);
}

export function registerPipelinesCommand(program: Command, shell: Shell): void {
  const pipelines = program.command('pipelines').description('list stored pipelines and name their versions');
  const listed = pipelines
    .command('ls', { isDefault: true })
    .description('list stored pipelines with their latest version')
    .addHelpText('after', '\nExample:\n  capstan pipelines')
    .action((options: CommonOptions) => list(options, shell));
  const alias = pipelines.command('alias').description('names for versions of a pipeline');
  const listedAliases = alias
    .command('ls')
    .description('list the names; latest is always there')
    .argument('<pipeline>', 'name of the pipeline')
    .addHelpText('after', '\nExample:\n  capstan pipelines alias ls trailer')
    .action((pipeline: string, options: CommonOptions) => listAliases(pipeline, options, shell));
  const set = alias
    .command('set')
    .description('let a name stand for a version, from the next run on')
    .argument('<pipeline>', 'name of the pipeline')
    .argument('<alias>', 'the name, such as production')
    .argument('<version>', 'a stored version')
    .addHelpText('after', '\nExample:\n  capstan pipelines alias set trailer production 1.4')
    .action((pipeline: string, name: string, version: string, options: CommonOptions) =>
      setAlias({ pipeline, alias: name, version }, options, shell),
    );
  for (const command of [listed, listedAliases, set]) addCommonOptions(command);
}
