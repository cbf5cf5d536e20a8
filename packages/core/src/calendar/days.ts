/**
 * Days of a time zone, and the buckets into which they are cut.
 *
 * D1 A day begins at its first moment: where clocks skip midnight, at the first time that exists; where they repeat it,
 * at its first occurrence. So a day has 23, 24 or 25 hours, in some zones other ones, and a zone may skip a day. D2
 * Buckets follow one another without gaps, from the start of the first day to the end of the last one, so each moment of
 * a span is in exactly one. Hours are counted from the start of their day. D3 Periods end today. A week begins on Monday.
 */
import type { CostBucket, CostPeriod } from '../contracts/money.ts';
import { momentsOf, openZone, type Zone } from './zone.ts';

const hourMs = 3_600_000;
const dayMs = 86_400_000;

/** YYYY-MM-DD, both included. */
export interface DaySpan {
  readonly from: string;
  readonly to: string;
}

function toMs(day: string): number {
  return Date.parse(`${day}T00:00:00Z`);
}

function toDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

export function addDays(day: string, days: number): string {
  return toDay(toMs(day) + days * dayMs);
}

/** The day that a calendar on the wall shows there at a moment. @throws RangeError for an unknown zone */
export function dayAt(ms: number, timezone: string): string {
  return toDay(openZone(timezone).dateOf(ms));
}

/** How many days a span has, by the calendar. */
export function countDays({ from, to }: DaySpan): number {
  return (toMs(to) - toMs(from)) / dayMs + 1;
}

function firstOfMonth(day: string): string {
  return `${day.slice(0, 8)}01`;
}

function firstOfNextMonth(day: string): string {
  return firstOfMonth(addDays(firstOfMonth(day), 31));
}

function mondayOf(day: string): string {
  return addDays(day, -((new Date(toMs(day)).getUTCDay() + 6) % 7));
}

/** By D3. @param first the first day of `all` */
export function spanOf(period: CostPeriod, { today, first }: { today: string; first: string }): DaySpan {
  switch (period) {
    case 'day':
      return { from: today, to: today };
    case 'yesterday':
      return { from: addDays(today, -1), to: addDays(today, -1) };
    case 'week':
      return { from: mondayOf(today), to: today };
    case 'last_7_days':
      return { from: addDays(today, -6), to: today };
    case 'month':
      return { from: firstOfMonth(today), to: today };
    case 'last_month': {
      const to = addDays(firstOfMonth(today), -1);
      return { from: firstOfMonth(to), to };
    }
    case 'last_30_days':
      return { from: addDays(today, -29), to: today };
    case 'all':
      return { from: first > today ? today : first, to: today };
  }
}

/** The day on which a week or month ends that has begun; null: a period without an end to come. */
export function lastDayOf(period: CostPeriod, today: string): string | null {
  switch (period) {
    case 'day':
      return today;
    case 'week':
      return addDays(mondayOf(today), 6);
    case 'month':
      return addDays(firstOfNextMonth(today), -1);
    default:
      return null;
  }
}

function startIn(zone: Zone, day: string): number {
  const offsets = zone.offsetsOn(toMs(day));
  return momentsOf(toMs(day), offsets)[0] ?? offsets.turn;
}

/** By D1, Unix milliseconds. @throws RangeError for an unknown zone */
export function dayStart(day: string, timezone: string): number {
  return startIn(openZone(timezone), day);
}

/** Hours show a day or a few, days a quarter of a year. */
export function bucketFor(span: DaySpan): CostBucket {
  const days = countDays(span);
  return days === 1 ? 'hour' : days <= 93 ? 'day' : 'month';
}

export interface Cut {
  /** Unix milliseconds, ascending. */
  readonly starts: readonly number[];
  /** The end of the last bucket. */
  readonly until: number;
}

/** By D2. @throws RangeError for an unknown zone */
export function cutSpan(
  { from, to }: DaySpan,
  { bucket, timezone }: { bucket: CostBucket; timezone: string },
): Cut {
  const zone = openZone(timezone);
  const until = startIn(zone, addDays(to, 1));
  const starts: number[] = [];
  for (let day = from; day <= to; day = bucket === 'month' ? firstOfNextMonth(day) : addDays(day, 1)) {
    const start = startIn(zone, day);
    const end = bucket === 'hour' ? startIn(zone, addDays(day, 1)) : start + 1;
    for (let at = start; at < end && at < until; at += hourMs) if (at !== starts.at(-1)) starts.push(at);
  }
  return { starts, until };
}
