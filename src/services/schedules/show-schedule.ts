import type { Schedule } from '../../contracts/schedule.ts';
import type { Db } from '../../db/connect.ts';
import type { ScheduleRow } from '../../db/schedule/schedule.ts';
import { markScheduleForgotten } from '../../db/schedule/schedule-delivery.ts';
import type { NextTimes } from './next-times.ts';
import { isDelivered, toSchedule } from './schedule-view.ts';

/** A view does not wait longer for Temporal. */
const viewMs = 2_000;

/** The row, with its next starts as far as Temporal knows them. A schedule that Temporal has forgotten is told again. */
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
