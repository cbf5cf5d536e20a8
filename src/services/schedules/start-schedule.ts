import type { TemporalSchedules } from '../../clients/temporal/schedules.ts';
import type { Db } from '../../db/connect.ts';
import type { ScheduleRow } from '../../db/schedule/schedule.ts';
import { markScheduleForgotten } from '../../db/schedule/schedule-delivery.ts';
import { AppError } from '../../errors/app-error.ts';
import { isDelivered } from './schedule-view.ts';

const retryAfterS = 5;

/** Asks Temporal for a start now, as the schedule's overlap policy allows. @throws AppError `unavailable` */
export async function startSchedule(
  db: Db,
  schedules: Pick<TemporalSchedules, 'trigger'>,
  row: ScheduleRow,
): Promise<void> {
  if (!isDelivered(row)) {
    const message = `Temporal does not know the schedule ${row.body.name} yet`;
    throw new AppError('unavailable', message, { retryAfterS });
  }
  const asked = await schedules.trigger(row, row.body.overlap).catch((cause: unknown) => {
    throw new AppError('unavailable', 'Temporal does not answer', { cause, retryAfterS });
  });
  if (asked === 'asked') return;
  await markScheduleForgotten(db, row.schedule_id);
  const message = `Temporal had forgotten the schedule ${row.body.name}; it is told again`;
  throw new AppError('unavailable', message, { retryAfterS });
}
