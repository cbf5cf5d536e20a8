/**
 * Formats money, durations, sizes and times; the console formats none of them elsewhere. Dates and times use the locale
 * and the zone of the browser; other numbers have a decimal point, as in the English page and on the command line.
 */
import { durationUnits } from '@capstan/core/duration';

export { formatDuration } from '@capstan/core/duration';
export { formatUsd } from '@capstan/core/money/nano-usd';

/** The zone of the browser, which every page names: `Europe/Berlin`. */
export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** `in 4 min`, `12 s ago`, `now`. */
export function formatAgo(at: string, now: number): string {
  const ms = now - Date.parse(at);
  if (Math.abs(ms) < 1_000) return 'now';
  const first = durationUnits.find(([, unit]) => Math.abs(ms) >= unit);
  const text = first === undefined ? '' : `${Math.floor(Math.abs(ms) / first[1])} ${first[0]}`;
  return ms < 0 ? `in ${text}` : `${text} ago`;
}

const clock = { hour: '2-digit', minute: '2-digit', second: '2-digit' } as const;
const exactClock = { ...clock, fractionalSecondDigits: 3 } as const;
const day = { year: 'numeric', month: 'short', day: 'numeric' } as const;

/** `14:03:27`, with its date when it is not today. */
export function formatClock(at: string, now: number = Date.now()): string {
  const moment = new Date(at);
  const isToday = new Date(now).toDateString() === moment.toDateString();
  return isToday ? moment.toLocaleTimeString([], clock) : moment.toLocaleString([], { ...day, ...clock });
}

/** `14:03:27.123`, for lists of times within one day. */
export function formatTimeOfDay(at: string): string {
  return new Date(at).toLocaleTimeString([], exactClock);
}

/** `25 Nov 2026, 14:03:27.123 CET`: the exact form behind every other one. */
export function formatExact(at: string): string {
  return new Date(at).toLocaleString([], { ...day, ...exactClock, timeZoneName: 'short' });
}

/** `25 Nov 2026, 09:00`. @param timeZone default: the browser's */
export function formatMoment(at: string, timeZone: string = zone): string {
  return new Date(at).toLocaleString([], { ...day, hour: '2-digit', minute: '2-digit', timeZone });
}

/** `09:00`. @param timeZone default: the browser's */
export function formatHour(at: string, timeZone: string = zone): string {
  return new Date(at).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', timeZone });
}

const sizes = ['kB', 'MB', 'GB', 'TB'] as const;

/** `1.2 MB`: a kilobyte has 1,000 bytes. */
export function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  const power = Math.min(sizes.length, Math.floor(Math.log10(bytes) / 3));
  const amount = bytes / 1_000 ** power;
  return `${amount < 10 ? amount.toFixed(1) : Math.round(amount)} ${sizes[power - 1]}`;
}
