/** A day's budget as shares of its limit, and as words. */
import type { Budget, BudgetPeriod, ScopedBudget } from '@capstan/core/contracts/money';
import { formatHour, formatUsd } from '../shared/format.ts';

export interface BudgetShares {
  /** 0 to 1; 0 without a limit. */
  readonly spent: number;
  readonly reserved: number;
}

export function sharesOf({
  daily_limit_usd,
  spent_usd,
  reserved_usd,
}: Pick<Budget, 'daily_limit_usd' | 'spent_usd' | 'reserved_usd'>): BudgetShares {
  if (daily_limit_usd === 0) return { spent: 0, reserved: 0 };
  const whole = Math.max(daily_limit_usd, spent_usd + reserved_usd);
  return { spent: spent_usd / whole, reserved: reserved_usd / whole };
}

export function describeLeft({ daily_limit_usd, spent_usd, reserved_usd }: Budget): string {
  if (daily_limit_usd === 0) return 'No daily limit';
  const left = Math.max(0, daily_limit_usd - spent_usd - reserved_usd);
  return `${formatUsd(left)} left`;
}

/** `Resets at 00:00 UTC (01:00 here)`; in the zone of the browser the time appears once. */
export function describeReset({ resets_at, timezone }: Pick<ScopedBudget, 'resets_at' | 'timezone'>): string {
  if (resets_at === null) return 'It never resets';
  return `Resets at ${inBothZones(resets_at, timezone)}`;
}

/** `00:00 UTC (01:00 here)`; in the zone of the browser the time appears once. */
function inBothZones(at: string, timezone: string): string {
  const [there, here] = [formatHour(at, timezone), formatHour(at)];
  return `${there} ${timezone}${there === here ? '' : ` (${here} here)`}`;
}

/** The share of its day that has passed, 0 to 1. */
export function shareOfDay({ resets_at }: Budget, now: number): number {
  const left = Date.parse(resets_at) - now;
  return Math.min(1, Math.max(0, 1 - left / 86_400_000));
}

interface ForecastBudget extends Pick<Budget, 'forecast' | 'timezone'> {
  readonly period: BudgetPeriod;
}

/** `At this rate $12 by the end of the day; the limit is reached at 19:40 UTC.`; null without a rate. */
export function describeForecast({ forecast, period, timezone }: ForecastBudget): string | null {
  if (forecast === null) return null;
  const limit = describeLimit({ forecast, period, timezone });
  if (forecast.spend_usd === null)
    return limit === null ? null : `At this rate the limit is reached ${limit}.`;
  const end = `At this rate ${formatUsd(forecast.spend_usd)} by the end of the ${period}`;
  return limit === null ? `${end}.` : `${end}; the limit is reached ${limit}.`;
}

export const budgetPeriods = ['day', 'month', 'total'] as const satisfies readonly BudgetPeriod[];

/** `a day`, `a month`, `in total` */
export function describePeriod(period: BudgetPeriod): string {
  return period === 'total' ? 'in total' : `a ${period}`;
}

/** `at 19:40 UTC (20:40 here)`, else `on 29 Nov, 19:40 (UTC)`; null: not before the window ends. */
export function describeLimit({ forecast, period, timezone: timeZone }: ForecastBudget): string | null {
  if (forecast === null || forecast.limit_at === null) return null;
  if (period === 'day') return `at ${inBothZones(forecast.limit_at, timeZone)}`;
  const time = formatHour(forecast.limit_at, timeZone);
  const year = period === 'total' ? ({ year: 'numeric' } as const) : {};
  const date = { day: 'numeric', month: 'short', ...year, timeZone } as const;
  return `on ${new Date(forecast.limit_at).toLocaleDateString(undefined, date)}, ${time} (${timeZone})`;
}

/** `batch=bat_1` of `label:batch=bat_1`, as the list of runs filters by it; null: another part. */
export function labelOfScope(scope: string): string | null {
  return scope.startsWith('label:') ? scope.slice('label:'.length) : null;
}
