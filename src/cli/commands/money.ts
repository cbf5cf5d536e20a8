/** Costs of a project: `costs` as sums, the `ledger` entries, and daily limits in `budgets`. */
import {
  Budget,
  BudgetList,
  BudgetPeriod,
  BudgetScope,
  CostPeriod,
  CostSeries,
  CostSummary,
  type LedgerEntry,
  LedgerKind,
  LedgerPage,
  ScopedBudget,
  ScopedBudgetList,
} from '@capstan/core/contracts/money';
import { download, jsonBody, path } from '../client/api-client.ts';
import { asRow, command, group, listed, oneOf, parsed, procedure, required } from '../command.ts';
import { readLimit, readShare, readUsd } from '../input/arguments.ts';
import { formatDailyLimit, formatUsd } from '../render/formats.ts';
import type { Columns, Printer } from '../render/print.ts';

const costTable: Columns<CostSummary['by_capability'][number]> = [
  ['CAPABILITY', 'capability', 'shrinks'],
  ['SPENT', ({ spend_usd }) => formatUsd(spend_usd), 'right'],
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

function sumTable(by: string): Columns<{ readonly name: string; readonly usd: number }> {
  return [
    [by.toUpperCase(), 'name', 'shrinks'],
    ['SPENT', ({ usd }) => formatUsd(usd), 'right'],
  ];
}

function printSums(print: Printer, by: string, { series }: CostSeries): void {
  if (series.length === 0) print.remark('no costs');
  const rows = series.map(({ name, points }) => ({
    name: name === '' ? '-' : name,
    usd: points.reduce((sum, [, usd]) => sum + usd, 0),
  }));
  if (rows.length > 0) print.table(sumTable(by), rows);
}

export const registerCostsCommand = procedure('costs', {
  about: 'show what the project spent, and its limit',
  example: 'capstan costs --period month',
  options: {
    '--period <period>': oneOf('calendar week or month, or everything', CostPeriod.options, 'day'),
    '--by <dimension>': 'by capability, pipeline, endpoint, key, user or label:NAME',
  },
  run: async ({ client, print, json }, { period, by }) => {
    if (by !== undefined) {
      const series = await client.get('/v1/costs/series', CostSeries, { period, by });
      return json ? print.json(series.text) : printSums(print, by, series.value);
    }
    const { value: costs, text } = await client.get('/v1/costs', CostSummary, { period });
    if (json) return print.json(text);
    print.line(describeToday(costs));
    if (period !== 'day') print.line(describePeriod(costs));
    if (costs.by_capability.length > 0) print.table(costTable, costs.by_capability);
  },
});

const ledgerTable: Columns<LedgerEntry> = [
  ['AT', 'at'],
  ['DAY', 'window'],
  ['KIND', 'kind'],
  ['AMOUNT', ({ amount_usd }) => formatUsd(amount_usd), 'right'],
  ['', ({ certainty }) => (certainty === 'exact' ? '' : certainty)],
  ['CAPABILITY', 'capability', 'shrinks'],
  ['RUN', 'run_id'],
  ['STEP', 'step_id', 'shrinks'],
];

export const registerLedgerCommand = procedure('ledger', {
  about: 'list movements of money, newest first',
  example: 'capstan ledger --since 2026-01-01 --csv > ledger.csv',
  options: {
    '--since <date>': 'from this day on, such as 2026-01-31',
    '--until <date>': 'up to this day',
    '--kind <kind>': oneOf('only this kind', LedgerKind.options),
    '--capability <name>': 'only calls of this capability',
    '--run <id>': 'only calls of this run',
    '-n, --limit <n>': parsed('at most so many', readLimit, 20),
    '--csv': 'print everything that matches as CSV',
  },
  run: async (
    { client, print, json, shell },
    { since, until, kind, capability, run: run_id, limit, csv },
  ) => {
    const which = { since, until, kind, capability, run_id };
    if (csv === true) {
      const query = { ...which, format: 'csv' };
      return download(client, '/v1/ledger', { query, headers: { accept: 'text/csv' }, to: shell.stdout });
    }
    const { value, text } = await client.get('/v1/ledger', LedgerPage, { ...which, limit });
    if (json) return print.json(text);
    if (value.items.length === 0) return print.remark('no entries');
    print.table(ledgerTable, value.items);
    if (value.next_cursor !== null) print.remark(`the newest ${limit}; --csv prints all`);
  },
});

function describeReached({ reached }: Pick<Budget, 'reached'>): string {
  const highest = reached.at(-1);
  return highest === undefined ? '' : `${highest.percent}%`;
}

const budgetTable: Columns<Budget> = [
  ['SCOPE', 'scope'],
  ['DAY', 'window'],
  ['LIMIT', ({ daily_limit_usd }) => formatDailyLimit(daily_limit_usd), 'right'],
  ['SPENT', ({ spent_usd }) => formatUsd(spent_usd), 'right'],
  ['RESERVED', ({ reserved_usd }) => formatUsd(reserved_usd), 'right'],
  ['REACHED', describeReached, 'right'],
  ['RESETS AT', 'resets_at'],
];

const scopedTable: Columns<ScopedBudget> = [
  ['SCOPE', 'scope', 'shrinks'],
  ['PERIOD', 'period'],
  ['LIMIT', ({ limit_usd }) => formatUsd(limit_usd), 'right'],
  ['SPENT', ({ spent_usd }) => formatUsd(spent_usd), 'right'],
  ['RESERVED', ({ reserved_usd }) => formatUsd(reserved_usd), 'right'],
  ['REACHED', describeReached, 'right'],
  ['RESETS AT', 'resets_at'],
];

const scopeAbout = 'key:ID, label:NAME=VALUE, capability:NAME or user:ID';

export const registerBudgetsCommand = group(
  'budgets',
  "show and set today's budgets, and those of keys, labels, capabilities and users",
  [
    command('ls', {
      about: "list today's budgets",
      example: 'capstan budgets',
      isDefault: true,
      call: ({ client }) => client.get('/v1/budgets', BudgetList),
      show: listed(budgetTable),
    }),
    command('set', {
      about: 'set the limit of a day',
      example: 'capstan budgets set --scope project --daily-limit-usd 5',
      options: {
        '--scope <scope>': oneOf(
          'global counts all projects and needs a key with the scope operator',
          BudgetScope.options,
          'project',
        ),
        '--daily-limit-usd <usd>': required(parsed('US dollars a day, 0 for no limit', readUsd)),
      },
      call: ({ client }, { scope, dailyLimitUsd: daily_limit_usd }) =>
        client.put('/v1/budgets', Budget, jsonBody({ scope, daily_limit_usd })),
      show: asRow(budgetTable),
    }),
    command('scoped', {
      about: 'list the budgets of keys, labels, capabilities and users',
      example: 'capstan budgets scoped',
      call: ({ client }) => client.get('/v1/budgets/scoped', ScopedBudgetList),
      show: listed(scopedTable),
    }),
    command('put', {
      about: 'set a budget of a key, a label, a capability or a user',
      example: 'capstan budgets put label:team=ads --period month --limit-usd 100',
      args: { '<scope>': scopeAbout },
      options: {
        '--limit-usd <usd>': required(parsed('US dollars in each period', readUsd)),
        '--period <period>': oneOf('in the time zone of the project', BudgetPeriod.options, 'day'),
        '--soft <share>': parsed('the share of the limit that is reported', readShare, 0.8),
      },
      call: ({ client }, { scope, limitUsd: limit_usd, period, soft }) =>
        client.put(path`/v1/budgets/scoped/${scope}`, ScopedBudget, jsonBody({ limit_usd, period, soft })),
      show: asRow(scopedTable),
    }),
    procedure('rm', {
      about: 'remove a budget of a key, a label, a capability or a user',
      example: 'capstan budgets rm label:team=ads --period month',
      args: { '<scope>': scopeAbout },
      options: { '--period <period>': oneOf('the period of the budget', BudgetPeriod.options, 'day') },
      run: async ({ client, print }, { scope, period }) => {
        await client.remove(path`/v1/budgets/scoped/${scope}`, { period });
        print.remark(`removed the budget of ${scope} by ${period}`);
      },
    }),
    procedure('erase-user', {
      about: "erase the id of a program's user from calls, ledger and budgets",
      example: 'capstan budgets erase-user anna',
      args: { '<user>': 'the user of OpenAI calls' },
      run: async ({ client, print, json }, { user }) => {
        const { text } = await client.remove(path`/v1/users/${user}`);
        if (json) print.json(text);
        else print.remark(`erased ${user}`);
      },
    }),
  ],
);
