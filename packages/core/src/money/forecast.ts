/**
 * The money that a window will have spent at its end, if spending continues at its average rate.
 *
 * F1 The rate is the spending since the window opened, by the time since then. F2 There is no forecast before a
 * twenty-fourth of the window has passed, nor without spending: one call at midnight is no rate. F3 Money that is
 * reserved is not spent, but leaves as little of the limit.
 */

export interface SpendWindow {
  /** Unix milliseconds; a budget that was added within its window opened then. */
  readonly opened: number;
  readonly closes: number;
  readonly spent: number;
  readonly reserved?: number;
  /** 0: none. */
  readonly limit?: number;
}

export interface SpendForecast {
  readonly spent: number;
  /** Unix milliseconds; null: not before the window closes, or it is reached already. */
  readonly limitAt: number | null;
}

const leastShare = 1 / 24;

/** Amounts are of one unit. @param now Unix milliseconds */
export function forecastSpend(window: SpendWindow, now: number): SpendForecast | null {
  const { opened, closes, spent, reserved = 0, limit = 0 } = window;
  const passed = now - opened;
  if (spent <= 0 || now >= closes || passed < (closes - opened) * leastShare) return null;
  const rate = spent / passed;
  const left = limit - spent - reserved;
  const limitAt = limit === 0 || left <= 0 ? null : now + left / rate;
  return {
    spent: spent + rate * (closes - now),
    limitAt: limitAt === null || limitAt >= closes ? null : Math.ceil(limitAt),
  };
}
