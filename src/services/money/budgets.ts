/** Today's budgets and their limits. */
import type { Budget, BudgetRequest } from '../../contracts/money.ts';
import { fromNanoUsd, toNanoUsd } from '../../core/money/nano-usd.ts';
import { type BudgetRow, listBudgets, setGlobalLimit, setProjectLimit } from '../../db/budget.ts';
import type { Db } from '../../db/connect.ts';
import { type Caller, requireScope } from '../access/caller.ts';

const toBudget = (row: BudgetRow): Budget => {
  const marks = [
    { percent: 50, at: row.reached_50_at },
    { percent: 80, at: row.reached_80_at },
    { percent: 100, at: row.reached_100_at },
  ];
  return {
    scope: row.name,
    window: row.day,
    timezone: row.timezone,
    daily_limit_usd: fromNanoUsd(BigInt(row.limit_nano ?? 0)),
    spent_usd: fromNanoUsd(BigInt(row.spent_nano)),
    reserved_usd: fromNanoUsd(BigInt(row.reserved_nano)),
    resets_at: row.resets_at.toISOString(),
    reached: marks.flatMap(({ percent, at }) => (at === null ? [] : [{ percent, at: at.toISOString() }])),
  };
};

export const readBudgets = async (db: Db, { project_id }: Caller): Promise<Budget[]> =>
  (await listBudgets(db, project_id)).map(toBudget);

/**
 * Holds for every reservation that begins after it returns; what is reserved already stays so, also above the limit.
 *
 * @throws AppError `forbidden` when the global limit is not set by an admin key
 */
export const setBudget = async (
  db: Db,
  caller: Caller,
  { scope, daily_limit_usd }: BudgetRequest,
): Promise<Budget> => {
  if (scope === 'global') requireScope(caller, 'admin');
  const limitNano = daily_limit_usd === 0 ? null : toNanoUsd(daily_limit_usd);
  if (scope === 'global') await setGlobalLimit(db, limitNano);
  else await setProjectLimit(db, caller.project_id, limitNano);
  const budgets = await readBudgets(db, caller);
  return budgets.find((budget) => budget.scope === scope) as Budget;
};
