import { type Command, Option } from 'commander';
import { CostPeriod, CostSummary } from '../../contracts/money.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { formatUsd } from '../render/amounts.ts';
import type { Column } from '../render/table.ts';
import type { Shell } from '../shell.ts';

interface CostsOptions extends CommonOptions {
  readonly period: CostPeriod;
}

const columns: readonly Column[] = [
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
    columns,
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
