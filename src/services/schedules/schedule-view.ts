import type { Schedule } from '../../contracts/schedule.ts';
import type { ScheduleRow } from '../../db/schedule/schedule.ts';

const shownTimes = 5;

export function isDelivered({ version, delivered_version }: ScheduleRow): boolean {
  return delivered_version >= version;
}

/** @param times the next ones */
export function toSchedule(row: ScheduleRow, times: readonly Date[]): Schedule {
  return {
    schedule_id: row.schedule_id,
    ...row.body,
    delivered: isDelivered(row),
    next_at: times.slice(0, shownTimes).map((time) => time.toISOString()),
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}
