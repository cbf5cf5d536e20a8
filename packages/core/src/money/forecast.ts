/**
 * The money that a window will have spent at its end, if spending continues at its average rate.
 *
 * F1 The rate is the spending since the window opened, by the time since then. F2 There is no forecast before a
 * twenty-fourth of the window has passed, nor without spending: one call at midnight is no rate. F3 Money that is
 * reserved is not spent, but leaves as little of the limit. F4 A window that never closes has no end to forecast: an hour
 * of it gives a rate, and a limit that the rate does not reach within ten years is not reached.
 */

export interface SpendWindow {
  /** Unix milliseconds; a budget that was added within its window opened then. */
  readonly opened: number;
  /** Null: never. */
  readonly closes: number | null;
  readonly spent: number;
  readonly reserved?: number;
  /** 0: none. */
  readonly limit?: number;
}

export interface SpendForecast {
  /** Null: the window never closes. */
  readonly spent: number | null;
  /** Unix milliseconds; null: not before the window closes, or it is reached already. */
  readonly limitAt: number | null;
}

const leastShare = 1 / 24;
const hourMs = 3_600_000;
const tenYearsMs = 3_653 * 24 * hourMs;

/** Amounts are of one unit. @param now Unix milliseconds */
export function forecastSpend(
  window: SpendWindow & { readonly closes: number },
  now: number,
): (SpendForecast & { readonly spent: number }) | null;
export function forecastSpend(window: SpendWindow, now: number): SpendForecast | null;
export function forecastSpend(window: SpendWindow, now: number): SpendForecast | null {
  const { opened, closes, spent, reserved = 0, limit = 0 } = window;
  const passed = now - opened;
  const end = closes ?? now + tenYearsMs;
  const least = closes === null ? hourMs : (closes - opened) * leastShare;
  if (spent <= 0 || now >= end || passed < least) return null;
  const rate = spent / passed;
  const left = limit - spent - reserved;
  const limitAt = left <= 0 ? null : now + left / rate;
  return {
    spent: closes === null ? null : spent + rate * (closes - now),
    limitAt: limitAt === null || limitAt >= end ? null : Math.ceil(limitAt),
  };
}
