/**
 * Budgets for a part of a project's calls. A call has one key, one capability, at most one user and one value of each
 * label, and each of these may have a budget by day, by month and by total. So the budgets of a project bound how many of them
 * one call can match, and the bound is checked where a budget is added.
 */
import type { BudgetRefusal, ScopeAndPeriod } from '../contracts/money.ts';

export const mostScopedBudgets = 100;
const mostBatches = 1_000;
/** The most that one call is charged to. */
const mostMatched = 8;

/** `key`, `capability`, `user`, or `label:team`: a call has one value of it. */
function dimensionOf(scope: string): string {
  const kind = scope.slice(0, scope.indexOf(':'));
  return kind === 'label' ? scope.slice(0, scope.indexOf('=')) : kind;
}

/** Runs that were started together under one budget have this label, with the id of the batch. */
export const batchLabel = 'batch';

/** Whether the label is that of a batch, and no other use of its name. */
export function isInBatch(name: string, value: string): boolean {
  return name === batchLabel && value.startsWith('bat_');
}

/** `label:batch=<id>` */
export function scopeOfBatch(id: string): string {
  return `label:${batchLabel}=${id}`;
}

export function isBudgetOfBatch({ scope, period }: ScopeAndPeriod): boolean {
  const start = scopeOfBatch('');
  return period === 'total' && scope.startsWith(start) && isInBatch(batchLabel, scope.slice(start.length));
}

/** @returns why a project cannot have these budgets together, or null */
export function findExcess(budgets: readonly ScopeAndPeriod[]): string | null {
  const batches = budgets.filter(isBudgetOfBatch).length;
  if (batches > mostBatches)
    return `the project would have ${batches} budgets of batches; at most ${mostBatches} are allowed, and those of batches without runs are removed`;
  const others = budgets.length - batches;
  if (others > mostScopedBudgets)
    return `the project would have ${others} budgets; at most ${mostScopedBudgets} are allowed`;
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

/** `label:team=ads by month`, `label:batch=7 in total` */
export function nameScoped({ scope, period }: ScopeAndPeriod): string {
  return period === 'total' ? `${scope} in total` : `${scope} by ${period}`;
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
