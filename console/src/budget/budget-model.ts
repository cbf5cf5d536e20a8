/** A day's budget as shares of its limit, and as words. */
import type { Budget } from '../../../src/contracts/money.ts';
import { formatUsd } from '../shared/money.ts';

export interface BudgetShares {
  /** 0 to 1; 0 without a limit, of which nothing can be a share. */
  readonly spent: number;
  readonly reserved: number;
}

export function sharesOf({ daily_limit_usd, spent_usd, reserved_usd }: Budget): BudgetShares {
  if (daily_limit_usd === 0) return { spent: 0, reserved: 0 };
  const whole = Math.max(daily_limit_usd, spent_usd + reserved_usd);
  return { spent: spent_usd / whole, reserved: reserved_usd / whole };
}

export function describeLeft({ daily_limit_usd, spent_usd, reserved_usd }: Budget): string {
  if (daily_limit_usd === 0) return 'no limit is set';
  const left = Math.max(0, daily_limit_usd - spent_usd - reserved_usd);
  return left === 0 ? 'nothing is left' : `${formatUsd(left)} is left`;
}

/** `new day 00:00 (UTC)`: the time is in the zone that is named. */
export function describeReset({ resets_at, timezone }: Pick<Budget, 'resets_at' | 'timezone'>): string {
  const time = { hour: '2-digit', minute: '2-digit', timeZone: timezone } as const;
  return `new day ${new Date(resets_at).toLocaleTimeString('en-GB', time)} (${timezone})`;
}

/** How much of its day has passed, 0 to 1. */
export function shareOfDay({ resets_at }: Budget, now: number): number {
  const left = Date.parse(resets_at) - now;
  return Math.min(1, Math.max(0, 1 - left / 86_400_000));
}
