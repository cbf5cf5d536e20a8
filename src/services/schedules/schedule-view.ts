/**
 * Shows a schedule as the API does, with its next starts. Temporal is asked about each schedule separately, so a
 * process has few such requests open, however many requests list schedules. An answer is kept for some seconds; until
 * then only a change of the schedule, which makes another version, could change it.
 */

import { LRUCache } from 'lru-cache';
import type { TemporalSchedules } from '../../clients/temporal/schedules.ts';
import type { Schedule } from '../../contracts/schedule.ts';
import type { Db } from '../../db/connect.ts';
import { markScheduleForgotten, type ScheduleRow } from '../../db/schedule.ts';

const shownTimes = 5;

export function isDelivered({ version, delivered_version }: ScheduleRow): boolean {
  return delivered_version >= version;
}

/** @param times the next ones */
function toSchedule(row: ScheduleRow, times: readonly Date[]): Schedule {
  return {
    schedule_id: row.schedule_id,
    ...row.body,
    delivered: isDelivered(row),
    next_at: times.slice(0, shownTimes).map((time) => time.toISOString()),
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}

/** How long a view waits for Temporal. */
const viewMs = 2_000;

/**
 * Shows the row with its next starts, if Temporal knows them. A schedule that Temporal has forgotten is delivered
 * again.
 */
export async function showSchedule(
  db: Db,
  schedules: { readonly nextTimes: NextTimes },
  row: ScheduleRow,
): Promise<Schedule> {
  if (row.body.paused || !isDelivered(row)) return toSchedule(row, []);
  const times = await schedules.nextTimes(row, viewMs).catch(() => []);
  if (times !== null) return toSchedule(row, times);
  await markScheduleForgotten(db, row.schedule_id);
  return toSchedule({ ...row, delivered_version: 0 }, []);
}

/** As `TemporalSchedules.nextTimes`. */
export type NextTimes = (row: ScheduleRow, ms: number) => Promise<readonly Date[] | null>;

const askedAtOnce = 8;
const mostKept = 10_000;
const keptMs = 10_000;

interface NextTimesOptions {
  readonly now?: () => number;
}

/**
 * Reads the next starts of schedules for lists. It limits the open requests to Temporal for all callers together and
 * keeps an answer for some seconds.
 */
export function createNextTimes(
  schedules: Pick<TemporalSchedules, 'nextTimes'>,
  { now = Date.now }: NextTimesOptions = {},
): NextTimes {
  const kept = new LRUCache<string, { readonly at: number; readonly times: Promise<readonly Date[] | null> }>(
    { max: mostKept },
  );
  const waiting: (() => void)[] = [];
  let asked = 0;

  /** Fails when its turn does not come in time. */
  const ask: NextTimes = async (row, ms) => {
    const began = now();
    if (asked >= askedAtOnce) await new Promise<void>((resolve) => waiting.push(resolve));
    asked += 1;
    try {
      const left = ms - (now() - began);
      if (left <= 0) throw new Error('Temporal was not asked in time');
      return await schedules.nextTimes(row, left);
    } finally {
      asked -= 1;
      waiting.shift()?.();
    }
  };

  return async (row, ms) => {
    const key = `${row.schedule_id} ${row.version}`;
    const found = kept.get(key);
    if (found !== undefined && now() - found.at < keptMs) {
      const times = await found.times;
      return times?.filter((time) => time.getTime() > now()) ?? null;
    }
    const times = ask(row, ms);
    kept.set(key, { at: now(), times });
    const isWrong = (): unknown => kept.get(key)?.times === times && kept.delete(key);
    times.then((answer) => answer === null && isWrong(), isWrong); // the next caller asks again
    return times;
  };
}
