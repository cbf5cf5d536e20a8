/** What a project spends: `costs` in sum, `ledger` one by one, and its limits of a day by `budgets`. */

import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Command, Option } from 'commander';
import {
  Budget,
  BudgetList,
  BudgetScope,
  CostPeriod,
  CostSummary,
  type LedgerEntry,
  LedgerKind,
  LedgerPage,
} from '../../contracts/money.ts';
import { jsonBody, toUnreachable } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession, type Session } from '../client/session.ts';
import { readLimit, readUsd } from '../input/arguments.ts';
import { formatUsd } from '../render/formats.ts';
import type { Column, Printer } from '../render/print.ts';
import type { Shell } from '../shell.ts';

interface CostsOptions extends CommonOptions {
  readonly period: CostPeriod;
}

const costColumns: readonly Column[] = [
  { header: 'CAPABILITY', shrinks: true },
  { header: 'SPENT', align: 'right' },
];

function describeToday({
  today_spend_usd,
  today_saved_usd,
  daily_limit_usd,
  reserved_usd,
}: CostSummary): string {
  const limit = daily_limit_usd === 0 ? 'no limit' : `limit ${formatUsd(daily_limit_usd)}`;
  const reserved = reserved_usd === 0 ? '' : `, ${formatUsd(reserved_usd)} reserved`;
  const saved = today_saved_usd === 0 ? '' : `  saved today ${formatUsd(today_saved_usd)}`;
  return `today ${formatUsd(today_spend_usd)}${reserved}  ${limit}${saved}`;
}

function describePeriod({ period, from, to, timezone, spend_usd }: CostSummary): string {
  const days = from === null ? `until ${to}` : `${from} to ${to}`;
  return `${period} ${formatUsd(spend_usd)}  ${days}, ${timezone}`;
}

async function show(options: CostsOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.get('/v1/costs', CostSummary, { period: options.period });
  if (json) return print.json(text);
  print.line(describeToday(value));
  if (options.period !== 'day') print.line(describePeriod(value));
  if (value.by_capability.length === 0) return;
  print.table(
    costColumns,
    value.by_capability.map(({ capability, spend_usd }) => [capability, formatUsd(spend_usd)]),
  );
}

export function registerCostsCommand(program: Command, shell: Shell): void {
  const command = program
    .command('costs')
    .description('show what the project spent, and its limit')
    .addOption(
      new Option('--period <period>', 'calendar week or month, or everything')
        .choices(CostPeriod.options)
        .default('day'),
    )
    .addHelpText('after', '\nExample:\n  capstan costs --period month')
    .action((options: CostsOptions) => show(options, shell));
  addCommonOptions(command);
}

interface LedgerOptions extends CommonOptions {
  readonly since?: string;
  readonly until?: string;
  readonly kind?: string;
  readonly capability?: string;
  readonly run?: string;
  readonly limit: number;
  readonly csv?: boolean;
}

const ledgerColumns: readonly Column[] = [
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

async function listEntries(options: LedgerOptions, shell: Shell): Promise<void> {
  const session = await openSession(options, shell);
  if (options.csv === true) return writeCsv(session, options);
  const { client, print, json } = session;
  const query = { ...filtersOf(options), limit: options.limit };
  const { value, text } = await client.get('/v1/ledger', LedgerPage, query);
  if (json) return print.json(text);
  if (value.items.length === 0) return print.remark('no entries');
  print.table(ledgerColumns, value.items.map(toRow));
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
    .action((options: LedgerOptions) => listEntries(options, shell));
  addCommonOptions(command);
}

interface SetOptions extends CommonOptions {
  readonly scope: BudgetScope;
  readonly dailyLimitUsd: number;
}

const budgetColumns: readonly Column[] = [
  { header: 'SCOPE' },
  { header: 'DAY' },
  { header: 'LIMIT', align: 'right' },
  { header: 'SPENT', align: 'right' },
  { header: 'RESERVED', align: 'right' },
  { header: 'REACHED', align: 'right' },
  { header: 'RESETS AT' },
];

function printBudgets(budgets: readonly Budget[], print: Printer): void {
  const rows = budgets.map((budget) => {
    const highest = budget.reached.at(-1);
    return [
      budget.scope,
      budget.window,
      budget.daily_limit_usd === 0 ? 'none' : formatUsd(budget.daily_limit_usd),
      formatUsd(budget.spent_usd),
      formatUsd(budget.reserved_usd),
      highest === undefined ? '' : `${highest.percent}%`,
      budget.resets_at,
    ];
  });
  print.table(budgetColumns, rows);
}

async function listBudgets(options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.get('/v1/budgets', BudgetList);
  if (json) return print.json(text);
  printBudgets(value.items, print);
}

async function setLimit({ scope, dailyLimitUsd, ...options }: SetOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const body = jsonBody({ scope, daily_limit_usd: dailyLimitUsd });
  const { value, text } = await client.put('/v1/budgets', Budget, body);
  if (json) return print.json(text);
  printBudgets([value], print);
}

export function registerBudgetsCommand(program: Command, shell: Shell): void {
  const budgets = program.command('budgets').description("show and set today's budgets");
  const listed = budgets
    .command('ls', { isDefault: true })
    .description("list today's budgets")
    .addHelpText('after', '\nExample:\n  capstan budgets')
    .action((options: CommonOptions) => listBudgets(options, shell));
  addCommonOptions(listed);
  const set = budgets
    .command('set')
    .description('set the limit of a day')
    .addOption(
      new Option('--scope <scope>', 'global counts all projects and needs a key with the scope operator')
        .choices(BudgetScope.options)
        .default('project'),
    )
    .addOption(
      new Option('--daily-limit-usd <usd>', 'US dollars a day, 0 for no limit')
        .argParser(readUsd)
        .makeOptionMandatory(),
    )
    .addHelpText('after', '\nExample:\n  capstan budgets set --scope project --daily-limit-usd 5')
    .action((options: SetOptions) => setLimit(options, shell));
  addCommonOptions(set);
}
