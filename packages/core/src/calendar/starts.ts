/**
 * The moments at which a calendar starts in a time zone: the one rule for previews, for the next starts of a schedule,
 * and for the calendars in Temporal.
 *
 * T1 A local time that a line names starts once on its date. If the clock skips it, it starts at the next minute that
 * exists; if the clock repeats it, it starts at its first occurrence. T2 A line that names every hour is an interval:
 * it starts whenever the clock shows one of its minutes, so it neither pauses in a repeated hour nor starts for times
 * that do not exist.
 *
 * Temporal's own calendars skip, double or misplace starts where the clocks change. So planStarts gives it moments in
 * UTC for such zones, for some time ahead.
 */
import { type Calendar, readCron, toCalendar } from './cron.ts';
import { momentsOf, type Offsets, openZone, type Zone } from './zone.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;
/** The next 29th of February is at most eight years away. */
const mostDays = 8 * 366;

const hoursOfDay = 24;

/** The starts for one local date that matches, by T1 and T2. */
function startsOn(date: number, { hours, minutes }: Calendar, offsets: Offsets): readonly number[] {
  const isInterval = hours.length === hoursOfDay;
  return hours.flatMap((hour) =>
    minutes.flatMap((minute) => {
      const moments = momentsOf(date + (hour * 60 + minute) * minuteMs, offsets);
      return isInterval ? moments : [moments[0] ?? offsets.turn];
    }),
  );
}

export interface StartsQuery {
  readonly timezone: string;
  /** Unix milliseconds; all starts are later. */
  readonly after: number;
  readonly count: number;
}

/**
 * The next starts of a calendar, Unix milliseconds, oldest first.
 * @throws RangeError as readCron does, and for an unknown zone
 */
export function nextStarts(text: string, { timezone, after, count }: StartsQuery): readonly number[] {
  const calendars = readCron(text).map(toCalendar);
  const zone = openZone(timezone);
  const found = new Set<number>();
  const yesterday = zone.dateOf(after) - dayMs; // a skipped time may start on the next date
  let daysLeft = mostDays;
  for (let date = yesterday; daysLeft > 0; date += dayMs, daysLeft -= 1) {
    if (found.size >= count) daysLeft = Math.min(daysLeft, 1); // a clock that is set back over midnight repeats a date
    for (const calendar of calendars) {
      if (!calendar.matches(new Date(date))) continue;
      for (const start of startsOn(date, calendar, zone.offsetsOn(date))) if (start > after) found.add(start);
    }
  }
  return [...found].sort((a, b) => a - b).slice(0, count);
}

/**
 * The last start of a calendar before a moment, Unix milliseconds; null: there is none in eight years.
 * @throws RangeError as `nextStarts`
 */
export function previousStart(
  text: string,
  { timezone, before }: { readonly timezone: string; readonly before: number },
): number | null {
  const calendars = readCron(text).map(toCalendar);
  const zone = openZone(timezone);
  const found: number[] = [];
  const tomorrow = zone.dateOf(before) + dayMs;
  let daysLeft = mostDays;
  for (let date = tomorrow; daysLeft > 0; date -= dayMs, daysLeft -= 1) {
    if (found.length > 0) daysLeft = Math.min(daysLeft, 1); // a skipped time may start on the next date
    for (const calendar of calendars) {
      if (!calendar.matches(new Date(date))) continue;
      for (const start of startsOn(date, calendar, zone.offsetsOn(date)))
        if (start < before) found.push(start);
    }
  }
  return found.length === 0 ? null : Math.max(...found);
}

/** Times of some days of one month, all in UTC: each of the minutes in each of the hours. */
export interface UtcCalendar {
  readonly year: number;
  /** From 1. */
  readonly month: number;
  readonly days: readonly number[];
  readonly hours: readonly number[];
  readonly minutes: readonly number[];
}

/**
 * The calendars for Temporal: the lines themselves where the clock does not change, else moments in UTC for some days.
 */
export type StartPlan =
  | { readonly lines: readonly string[]; readonly timezone: string }
  | { readonly calendars: readonly UtcCalendar[] };

/** Times of a date, by hour: some days after it, each minute in each hour. */
interface Block {
  readonly shift: number;
  readonly hours: readonly number[];
  readonly minutes: readonly number[];
}

function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): readonly (readonly Item[])[] {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return [...groups.values()];
}

/** @param starts relative to midnight UTC of the date */
function toBlocks(starts: readonly number[]): readonly Block[] {
  const hourMs = 60 * minuteMs;
  const times = [...new Set(starts)].map((at) => ({
    hour: Math.floor(at / hourMs),
    minute: Math.floor((at % hourMs) / minuteMs + 60) % 60,
  }));
  const byHour = groupBy(times, ({ hour }) => String(hour)).map((same) => {
    const hour = same[0]?.hour ?? 0;
    const shift = Math.floor(hour / hoursOfDay);
    return { shift, hour: hour - shift * hoursOfDay, minutes: same.map(({ minute }) => minute) };
  });
  return groupBy(byHour, ({ shift, minutes }) => JSON.stringify([shift, minutes])).map((same) => ({
    shift: same[0]?.shift ?? 0,
    hours: same.map(({ hour }) => hour),
    minutes: same[0]?.minutes ?? [],
  }));
}

export interface PlanQuery {
  readonly timezone: string;
  /** Unix milliseconds. */
  readonly now: number;
}

/** How far ahead moments are planned. */
export const plannedDays = 400;

/**
 * The starts of a calendar for Temporal, from the day before `now` on.
 * @throws RangeError as readCron does, and for an unknown zone
 */
export function planStarts(text: string, { timezone, now }: PlanQuery): StartPlan {
  const lines = readCron(text);
  const zone = openZone(timezone);
  const first = zone.dateOf(now) - dayMs;
  const dates = Array.from({ length: plannedDays }, (_, day) => first + day * dayMs);
  if (dates.every((date) => zone.offsetsOn(date).turn === Number.POSITIVE_INFINITY))
    return { lines, timezone };
  const planned = lines.map(toCalendar).flatMap((calendar) => planCalendar(calendar, dates, zone));
  const byMonth = groupBy(planned, ({ year, month, hours, minutes }) =>
    JSON.stringify([year, month, hours, minutes]),
  );
  return {
    calendars: byMonth.flatMap((same) => {
      const [one] = same;
      return one === undefined ? [] : [{ ...one, days: [...new Set(same.flatMap(({ days }) => days))] }];
    }),
  };
}

/** Dates on which the clock does not change have the same blocks at the same offset. */
function planCalendar(calendar: Calendar, dates: readonly number[], zone: Zone): readonly UtcCalendar[] {
  const known = new Map<number, readonly Block[]>();
  const blocksOn = (date: number): readonly Block[] => {
    const offsets = zone.offsetsOn(date);
    const isRegular = offsets.turn === Number.POSITIVE_INFINITY;
    const blocks =
      (isRegular ? known.get(offsets.before) : undefined) ??
      toBlocks(startsOn(date, calendar, offsets).map((start) => start - date));
    if (isRegular) known.set(offsets.before, blocks);
    return blocks;
  };
  return dates
    .filter((date) => calendar.matches(new Date(date)))
    .flatMap((date) =>
      blocksOn(date).map(({ shift, hours, minutes }) => {
        const day = new Date(date + shift * dayMs);
        return {
          year: day.getUTCFullYear(),
          month: day.getUTCMonth() + 1,
          days: [day.getUTCDate()],
          hours,
          minutes,
        };
      }),
    );
}
