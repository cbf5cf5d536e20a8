import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Command, Option } from 'commander';
import { type LedgerEntry, LedgerKind, LedgerPage } from '../../contracts/money.ts';
import { toUnreachable } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession, type Session } from '../client/session.ts';
import { readLimit } from '../input/option-values.ts';
import { formatUsd } from '../render/amounts.ts';
import type { Column } from '../render/table.ts';
import type { Shell } from '../shell.ts';

interface LedgerOptions extends CommonOptions {
  readonly since?: string;
  readonly until?: string;
  readonly kind?: string;
  readonly capability?: string;
  readonly run?: string;
  readonly limit: number;
  readonly csv?: boolean;
}

const columns: readonly Column[] = [
  { header: 'AT' },
  { header: 'DAY' },
  { header: 'KIND' },
  { header: 'AMOUNT', align: 'right' },
  { header: '' },
  { header: 'CAPABILITY', shrinks: true },
  { header: 'RUN' },
  { header: 'STEP', shrinks: true },
];

function toRow(entry: LedgerEntry): string[] {
  return [
    entry.at,
    entry.window,
    entry.kind,
    entry.amount_usd < 0 ? `-${formatUsd(-entry.amount_usd)}` : formatUsd(entry.amount_usd),
    entry.certainty === 'exact' ? '' : entry.certainty,
    entry.capability,
    entry.run_id ?? '',
    entry.step_id ?? '',
  ];
}

function filtersOf({ since, until, kind, capability, run }: LedgerOptions) {
  return {
    since,
    until,
    kind,
    capability,
    run_id: run,
  };
}

async function writeCsv({ client, shell }: Session, options: LedgerOptions): Promise<void> {
  const query = { ...filtersOf(options), format: 'csv' };
  const response = await client.open('/v1/ledger', { query, headers: { accept: 'text/csv' } });
  try {
    await pipeline(Readable.from(response.body ?? []), shell.stdout, { end: false });
  } catch (thrown) {
    throw toUnreachable(client.connection.url, thrown);
  }
}

async function list(options: LedgerOptions, shell: Shell): Promise<void> {
  const session = await openSession(options, shell);
  if (options.csv === true) return writeCsv(session, options);
  const { client, print, json } = session;
  const query = { ...filtersOf(options), limit: options.limit };
  const { value, text } = await client.get('/v1/ledger', LedgerPage, query);
  if (json) return print.json(text);
  if (value.items.length === 0) return print.remark('no entries');
  print.table(columns, value.items.map(toRow));
  if (value.next_cursor !== null) print.remark(`the newest ${options.limit}; --csv prints all`);
}

export function registerLedgerCommand(program: Command, shell: Shell): void {
  const command = program
    .command('ledger')
    .description('list movements of money, newest first')
    .option('--since <date>', 'from this day on, such as 2026-01-31')
    .option('--until <date>', 'up to this day')
    .addOption(new Option('--kind <kind>', 'only this kind').choices(LedgerKind.options))
    .option('--capability <name>', 'only calls of this capability')
    .option('--run <id>', 'only calls of this run')
    .option('-n, --limit <n>', 'at most so many', readLimit, 20)
    .option('--csv', 'print everything that matches as CSV')
    .addHelpText('after', '\nExample:\n  capstan ledger --since 2026-01-01 --csv > ledger.csv')
    .action((options: LedgerOptions) => list(options, shell));
  addCommonOptions(command);
}
