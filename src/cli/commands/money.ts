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
import { describeGrowth } from '@capstan/core/money/held-words';
import { nameScoped } from '@capstan/core/money/scoped-budget';
import { InvalidArgumentError } from 'commander';
import { download, jsonBody, path } from '../client/api-client.ts';
import { asRow, command, group, listed, oneOf, parsed, procedure, required } from '../command.ts';
import { collectPair, readLimit, readShare, readUsd } from '../input/arguments.ts';
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

function describePeriod({ period, from, to, timezone, spend_usd, forecast_usd }: CostSummary): string {
  const days = from === null ? `until ${to}` : `${from} to ${to}`;
  const rate = forecast_usd === null ? '' : `  at this rate ${formatUsd(forecast_usd)} at its end`;
  return `${period ?? 'spent'} ${formatUsd(spend_usd)}  ${days}, ${timezone}${rate}`;
}

type CostGroup = Omit<CostSeries['series'][number], 'points' | 'is_rest'>;

type Groups = Readonly<Record<'by' | 'and', string | undefined>>;

function nameGroup(name: string | undefined, title: string | undefined): string {
  return name === undefined ? '' : (title ?? name) || '-';
}

function sumTable({ by = 'capability', and = '' }: Groups): Columns<CostGroup> {
  return [
    [by.toUpperCase(), ({ name, title }) => nameGroup(name, title), 'shrinks'],
    [and.toUpperCase(), (row) => nameGroup(row.and, row.and_title), 'shrinks'],
    ['CALLS', 'calls', 'right'],
    ['TOKENS', 'tokens', 'right'],
    ['SPENT', ({ usd }) => formatUsd(usd), 'right'],
  ];
}

function printSums(print: Printer, groups: Groups, { series, usd, calls, tokens }: CostSeries): void {
  if (series.length === 0) print.remark('no costs');
  const rows: CostGroup[] = [...series, { name: 'sum', usd, calls, tokens }];
  if (series.length > 0) print.table(sumTable(groups), rows);
}

/** Fields that select calls, such as `key`. */
const filters = ['capability', 'model', 'pipeline', 'endpoint', 'key', 'user', 'label'] as const;

function readFilter(
  text: string,
  previous: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const pairs = collectPair(text, previous);
  const unknown = Object.keys(pairs).find((name) => !filters.some((one) => one === name));
  if (unknown === undefined) return pairs;
  throw new InvalidArgumentError(`Write it as name=value, with one of ${filters.join(', ')}.`);
}

export const registerCostsCommand = procedure('costs', {
  about: 'show what the project spent, and its limit',
  example: 'capstan costs --period yesterday --by key --and model',
  options: {
    '--period <period>': oneOf('calendar week or month, or other days', CostPeriod.options),
    '--from <date>': 'from this day on, such as 2026-01-31, instead of a period',
    '--to <date>': 'up to this day; default: today',
    '--by <group>': 'calls and tokens too, by capability, model, pipeline, endpoint, key, user or label:NAME',
    '--and <group>': 'by a second of these groups',
    '--only <name=value>': parsed('only calls of it, such as label=team=ads; repeatable', readFilter),
    '--csv': 'print the groups by day as CSV',
  },
  run: async ({ client, print, json, shell }, { period, from, to, by, and, only, csv }) => {
    const span = { period: period ?? (from === undefined ? 'day' : undefined), from, to };
    const groups = { ...span, by, and, ...only };
    if (csv === true) {
      const query = { ...groups, format: 'csv' };
      return download(client, '/v1/costs/series', {
        query,
        headers: { accept: 'text/csv' },
        to: shell.stdout,
      });
    }
    if (by !== undefined || and !== undefined || only !== undefined) {
      const series = await client.get('/v1/costs/series', CostSeries, groups);
      return json ? print.json(series.text) : printSums(print, { by, and }, series.value);
    }
    const { value: costs, text } = await client.get('/v1/costs', CostSummary, span);
    if (json) return print.json(text);
    print.line(describeToday(costs));
    if (costs.period !== 'day') print.line(describePeriod(costs));
    if (costs.by_capability.length > 0) print.table(costTable, costs.by_capability);
  },
});

const ledgerTable: Columns<LedgerEntry> = [
  ['AT', 'at'],
  ['DAY', 'window'],
  ['KIND', 'kind'],
  ['AMOUNT', ({ amount_usd }) => formatUsd(amount_usd), 'right'],
  ['', (entry) => describeGrowth(entry) ?? ''],
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

/** `$6.00, limit at …`, at the end of the window; by total only the limit */
function describeForecast({ forecast }: Pick<Budget, 'forecast'>): string {
  if (forecast === null) return '';
  const { spend_usd, limit_at } = forecast;
  const limit = limit_at === null ? [] : [`limit at ${limit_at}`];
  return [...(spend_usd === null ? [] : [formatUsd(spend_usd)]), ...limit].join(', ');
}

const budgetTable: Columns<Budget> = [
  ['SCOPE', 'scope'],
  ['DAY', 'window'],
  ['LIMIT', ({ daily_limit_usd }) => formatDailyLimit(daily_limit_usd), 'right'],
  ['SPENT', ({ spent_usd }) => formatUsd(spent_usd), 'right'],
  ['RESERVED', ({ reserved_usd }) => formatUsd(reserved_usd), 'right'],
  ['REACHED', describeReached, 'right'],
  ['RESETS AT', 'resets_at'],
  ['AT THIS RATE', describeForecast],
];

const scopedTable: Columns<ScopedBudget> = [
  ['SCOPE', 'scope', 'shrinks'],
  ['PERIOD', 'period'],
  ['LIMIT', ({ limit_usd }) => formatUsd(limit_usd), 'right'],
  ['SPENT', ({ spent_usd }) => formatUsd(spent_usd), 'right'],
  ['RESERVED', ({ reserved_usd }) => formatUsd(reserved_usd), 'right'],
  ['REACHED', describeReached, 'right'],
  ['RESETS AT', ({ resets_at }) => resets_at ?? 'never'],
  ['AT THIS RATE', describeForecast],
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
        '--limit-usd <usd>': required(parsed('US dollars in each period, or in total', readUsd)),
        '--period <period>': oneOf(
          'in the time zone of the project; total never ends',
          BudgetPeriod.options,
          'day',
        ),
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
        print.remark(`removed the budget of ${nameScoped({ scope, period })}`);
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
