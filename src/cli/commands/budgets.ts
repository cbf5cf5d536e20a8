import { type Command, Option } from 'commander';
import { Budget, BudgetList, BudgetScope } from '../../contracts/money.ts';
import { jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { readUsd } from '../input/option-values.ts';
import { formatUsd } from '../render/amounts.ts';
import type { Printer } from '../render/print.ts';
import type { Column } from '../render/table.ts';
import type { Shell } from '../shell.ts';

interface SetOptions extends CommonOptions {
  readonly scope: BudgetScope;
  readonly dailyLimitUsd: number;
}

const columns: readonly Column[] = [
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
  print.table(columns, rows);
}

async function list(options: CommonOptions, shell: Shell): Promise<void> {
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
    .action((options: CommonOptions) => list(options, shell));
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
