/** Today's budgets: those that differ from what was seen last. */
import type { Budget } from '../../contracts/money.ts';
import type { StreamFrame } from '../../contracts/stream.ts';
import type { Db } from '../../db/connect.ts';
import { readAllBudgets } from '../money/budgets.ts';

export type SeenBudgets = ReadonlyMap<Budget['scope'], string>;

export async function compareBudgets(
  db: Db,
  projectId: string,
  seen: SeenBudgets,
): Promise<{ readonly frames: readonly StreamFrame[]; readonly seen: SeenBudgets }> {
  const budgets = await readAllBudgets(db, projectId);
  const changed = budgets.filter((budget) => seen.get(budget.scope) !== JSON.stringify(budget));
  return {
    frames: changed.map((data) => ({ kind: 'budget', data })),
    seen: new Map(budgets.map((budget) => [budget.scope, JSON.stringify(budget)])),
  };
}
