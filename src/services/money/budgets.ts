/** Today's budgets and their limits. */
import type { Budget, BudgetRequest } from '../../contracts/money.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import type { Db } from '../../db/connect.ts';
import { type BudgetRow, listBudgets } from '../../db/money/budget.ts';
import { type Caller, isOperator, requireScope } from '../access/caller.ts';
import { setDayLimit } from './raise-limit.ts';

function toBudget(row: BudgetRow): Budget {
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
}

/** Reads the project's budget and that of all projects. */
export async function readAllBudgets(db: Db, projectId: string): Promise<Budget[]> {
  return (await listBudgets(db, projectId)).map(toBudget);
}

/** Reads the project's budget; an operator also sees that of all projects. */
export async function readBudgets(db: Db, caller: Caller): Promise<Budget[]> {
  const budgets = await readAllBudgets(db, caller.project_id);
  return budgets.filter(({ scope }) => scope === 'project' || isOperator(caller));
}

/**
 * A higher limit wakes what waits for it, and answers the question about it.
 * Holds for every reservation that begins after it returns; what is reserved already stays so, also above the limit.
 *
 * @throws AppError `forbidden` when the limit of all projects is not set by an operator
 */
export async function setBudget(
  db: Db,
  caller: Caller,
  { scope, daily_limit_usd }: BudgetRequest,
): Promise<Budget> {
  if (scope === 'global') requireScope(caller, 'operator');
  const before =
    (await readBudgets(db, caller)).find((budget) => budget.scope === scope)?.daily_limit_usd ?? 0;
  const isRaise = before !== 0 && (daily_limit_usd === 0 || daily_limit_usd > before);
  const day = scope === 'global' ? { scope } : { scope, project_id: caller.project_id };
  const limit = { limitUsd: daily_limit_usd, by: caller.key_id, isRaise };
  await setDayLimit(db, day, limit);
  const budgets = await readBudgets(db, caller);
  return budgets.find((budget) => budget.scope === scope) as Budget;
}
