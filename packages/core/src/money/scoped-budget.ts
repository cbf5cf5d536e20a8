/**
 * Budgets for a part of a project's calls. A call has one key, one capability, at most one user and one value of each
 * label, and each of these may have a budget by day and one by month. So the budgets of a project bound how many of them
 * one call can match, and the bound is checked where a budget is added.
 */
import type { BudgetRefusal, ScopeAndPeriod } from '../contracts/money.ts';

export const mostScopedBudgets = 100;
/** The most that one call is charged to. */
const mostMatched = 8;

/** `key`, `capability`, `user`, or `label:team`: a call has one value of it. */
function dimensionOf(scope: string): string {
  const kind = scope.slice(0, scope.indexOf(':'));
  return kind === 'label' ? scope.slice(0, scope.indexOf('=')) : kind;
}

/** @returns why a project cannot have these budgets together, or null */
export function findExcess(budgets: readonly ScopeAndPeriod[]): string | null {
  if (budgets.length > mostScopedBudgets)
    return `the project would have ${budgets.length} budgets; at most ${mostScopedBudgets} are allowed`;
  const matched = new Set(budgets.map(({ scope, period }) => `${period} ${dimensionOf(scope)}`));
  if (matched.size <= mostMatched) return null;
  return `one call could match ${matched.size} budgets (${[...matched].toSorted().join(', ')}); at most ${mostMatched} are allowed`;
}

export interface CallSource {
  /** The key or the person that makes the call. */
  readonly keyId: string;
  readonly user?: string | null | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** The scopes of a call without a run, beside its capability. Those of a run follow from its row. */
export function scopesOfCall({ keyId, user, labels = {} }: CallSource): readonly string[] {
  return [
    `key:${keyId}`,
    ...(user == null || user === '' ? [] : [`user:${user}`]),
    ...Object.entries(labels).map(([name, value]) => `label:${name}=${value}`),
  ];
}

/** `label:team=ads by month` */
export function nameScoped({ scope, period }: ScopeAndPeriod): string {
  return `${scope} by ${period}`;
}

const names = {
  call: 'the call',
  run: 'the run',
  project: 'the project’s day',
  global: 'the day of all projects',
};

/** `the run`, `label:team=ads by month`: the budget that refused a call, for people. */
export function nameRefusing({
  scope,
  budget,
  period,
}: Pick<BudgetRefusal, 'scope' | 'budget' | 'period'>): string {
  if (budget !== undefined && period !== undefined) return nameScoped({ scope: budget, period });
  return scope in names ? names[scope as keyof typeof names] : scope;
}
