/** Schedules of a project that is being erased: none starts anything, and none is told to Temporal again. */
import type { Db } from '../connect.ts';
import { tryScheduleTurn } from '../schedule/schedule-delivery.ts';

export interface ErasedSchedule {
  readonly schedule_id: string;
  readonly workflow_id: string;
}

/** What Temporal still has of them is removed before their rows go, so nobody delivers the deletion. */
export async function endSchedules(db: Db, projectId: string): Promise<void> {
  await db.raw(
    `update schedule set deleted_at = clock_timestamp(), delivered_version = version
     where project_id = ? and deleted_at is null`,
    [projectId],
  );
}

export async function listEndedSchedules(db: Db, projectId: string): Promise<readonly ErasedSchedule[]> {
  return db('schedule').where({ project_id: projectId }).select('schedule_id', 'workflow_id');
}

/**
 * Whoever is telling Temporal of it, from what it read before, is waited for.
 * @param forget answers whether Temporal has nothing of it any more @returns whether the row has gone
 */
export function eraseSchedule(
  db: Db,
  schedule: ErasedSchedule,
  forget: (schedule: ErasedSchedule) => Promise<boolean>,
): Promise<boolean> {
  const { schedule_id } = schedule;
  return db.transaction(async (trx) => {
    if (!(await tryScheduleTurn(trx, schedule_id)) || !(await forget(schedule))) return false;
    await trx('schedule').where({ schedule_id }).delete();
    return true;
  });
}
