/** A day's budget as shares of its limit, and as words. */
import type { Budget, CostSeries } from '@capstan/core/contracts/money';
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
export function describeReset({ resets_at, timezone }: Pick<Budget, 'resets_at' | 'timezone'>): string {
  const [there, here] = [formatHour(resets_at, timezone), formatHour(resets_at)];
  return `Resets at ${there} ${timezone}${there === here ? '' : ` (${here} here)`}`;
}

/** The share of its day that has passed, 0 to 1. */
export function shareOfDay({ resets_at }: Budget, now: number): number {
  const left = Date.parse(resets_at) - now;
  return Math.min(1, Math.max(0, 1 - left / 86_400_000));
}

const hourMs = 3_600_000;

/** USD an hour, in this hour and the one before: costs are known by the hour. */
export function paceOf({ series }: Pick<CostSeries, 'series'>, now: number): number {
  const thisHour = Math.floor(now / hourMs) * hourMs;
  const since = thisHour - hourMs;
  const points = series.flatMap(({ points }) => points);
  const usd = points.reduce((sum, [at, cost]) => sum + (Date.parse(at) >= since ? cost : 0), 0);
  return (usd * hourMs) / (now - since);
}

/** `At this rate you reach the limit at 19:40 (UTC).`; null when the day ends first. */
export function describePace(budget: Budget, usdPerHour: number, now: number): string | null {
  const { daily_limit_usd, spent_usd, reserved_usd, resets_at, timezone } = budget;
  const left = daily_limit_usd - spent_usd - reserved_usd;
  if (daily_limit_usd === 0 || usdPerHour <= 0 || left <= 0) return null;
  const reachedAt = now + (left / usdPerHour) * hourMs;
  if (reachedAt >= Date.parse(resets_at)) return null;
  const time = { hour: '2-digit', minute: '2-digit', timeZone: timezone } as const;
  return `At this rate you reach the limit at ${new Date(reachedAt).toLocaleTimeString('en-GB', time)} (${timezone}).`;
}
