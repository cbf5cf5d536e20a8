import type { Command } from 'commander';
import { Publisher, PublisherList } from '../../contracts/capability.ts';
import { jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import type { Printer } from '../render/print.ts';
import type { Column } from '../render/table.ts';
import type { Shell } from '../shell.ts';

const columns: readonly Column[] = [{ header: 'NAME', shrinks: true }, { header: 'PROJECTS' }];

function printPublishers(publishers: readonly Publisher[], print: Printer): void {
  const rows = publishers.map(({ name, projects }) => [name, projects.join(', ')]);
  print.table(columns, rows);
}

async function list(options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const items: Publisher[] = [];
  let cursor: string | undefined;
  do {
    const { value } = await client.get('/v1/publishers', PublisherList, { limit: 200, cursor });
    items.push(...value.items);
    cursor = value.next_cursor ?? undefined;
  } while (cursor !== undefined);
  if (json) return print.json(JSON.stringify({ items, next_cursor: null }));
  if (items.length === 0) return print.remark('no publishers');
  printPublishers(items, print);
}

async function publish(
  { name, projects }: Pick<Publisher, 'name' | 'projects'>,
  options: CommonOptions,
  shell: Shell,
): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const path = `/v1/publishers/${encodeURIComponent(name)}`;
  const { value, text } = await client.put(path, Publisher, jsonBody({ projects }));
  if (json) return print.json(text);
  printPublishers([value], print);
}

export function registerPublishersCommand(program: Command, shell: Shell): void {
  const publishers = program
    .command('publishers')
    .description(
      'show and set who may register instances under a name (needs a key with the scope operator)',
    );
  const listed = publishers
    .command('ls', { isDefault: true })
    .description('list the names, and the projects that have them')
    .addHelpText('after', '\nExample:\n  capstan publishers ls')
    .action((options: CommonOptions) => list(options, shell));
  addCommonOptions(listed);
  const set = publishers
    .command('set')
    .description('give a name to these projects alone; what others have registered under it is deregistered')
    .argument('<name>', 'of a capability')
    .argument('<project...>', 'ids of the projects')
    .addHelpText('after', '\nExample:\n  capstan publishers set concat prj_01')
    .action((name: string, projects: string[], options: CommonOptions) =>
      publish({ name, projects }, options, shell),
    );
  addCommonOptions(set);
}
