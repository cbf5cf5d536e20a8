import type { BudgetRefusal } from '../../contracts/money.ts';

/** The name of the budget that refused a call, which is the subject of questions about it. @param of the call */
export function budgetScopeOf(
  { scope, run_id }: BudgetRefusal,
  of: { readonly project_id: string; readonly run_id: string },
): string {
  if (scope === 'project') return `project:${of.project_id}`;
  return scope === 'global' ? 'global' : `run:${run_id ?? of.run_id}`;
}
