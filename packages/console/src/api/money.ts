import type {
  Budget,
  CostSeries,
  CostSummary,
  LedgerEntry,
  ScopedBudget,
} from '@capstan/core/contracts/money';
import { queryOptions } from '@tanstack/react-query';
import { askPlainly } from './client.ts';

/** Query parameters of the API. */
type CostQueryText = Readonly<Record<string, string>>;

export function costsQuery(span: CostQueryText) {
  return queryOptions({
    queryKey: ['costs', span],
    queryFn: () => askPlainly<CostSummary>(`/v1/costs?${new URLSearchParams(span)}`),
    staleTime: 3_000,
  });
}

export function toCostSeriesPath(asked: CostQueryText): string {
  return `/v1/costs/series?${new URLSearchParams(asked)}`;
}

export function costSeriesQuery(asked: CostQueryText) {
  return queryOptions({
    queryKey: ['costs', 'series', asked],
    queryFn: () => askPlainly<CostSeries>(toCostSeriesPath(asked)),
  });
}

export function budgetsQuery() {
  return queryOptions({
    queryKey: ['budgets'],
    queryFn: () => askPlainly<{ readonly items: readonly Budget[] }>('/v1/budgets'),
  });
}

export function putBudget(scope: Budget['scope'], usd: number): Promise<unknown> {
  return askPlainly('/v1/budgets', { method: 'PUT', body: { scope, daily_limit_usd: usd } });
}

export function scopedBudgetsQuery() {
  return queryOptions({
    queryKey: ['budgets', 'scoped'],
    queryFn: () => askPlainly<{ readonly items: readonly ScopedBudget[] }>('/v1/budgets/scoped'),
  });
}

export function putScopedBudget({
  scope,
  ...body
}: Pick<ScopedBudget, 'scope' | 'period' | 'limit_usd'> &
  Partial<Pick<ScopedBudget, 'soft'>>): Promise<unknown> {
  return askPlainly(`/v1/budgets/scoped/${encodeURIComponent(scope)}`, { method: 'PUT', body });
}

export function removeScopedBudget({
  scope,
  period,
}: Pick<ScopedBudget, 'scope' | 'period'>): Promise<unknown> {
  return askPlainly(`/v1/budgets/scoped/${encodeURIComponent(scope)}?period=${period}`, { method: 'DELETE' });
}

export interface LedgerSearch {
  readonly capability?: string | undefined;
  readonly run_id?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

export function toLedgerPath(filter: LedgerSearch, rest: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(rest);
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, String(value));
  return `/v1/ledger?${query}`;
}

export function ledgerQuery(filter: LedgerSearch, cursor: string) {
  const rest: Record<string, string> = cursor === '' ? { limit: '100' } : { limit: '100', cursor };
  return queryOptions({
    queryKey: ['ledger', filter, cursor],
    queryFn: () =>
      askPlainly<{ readonly items: readonly LedgerEntry[]; readonly next_cursor: string | null }>(
        toLedgerPath(filter, rest),
      ),
  });
}
