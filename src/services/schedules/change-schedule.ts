import type { Schedule, ScheduleRequest } from '../../contracts/schedule.ts';
import type { Db } from '../../db/connect.ts';
import {
  lockSchedule,
  type ScheduleKey,
  type ScheduleRow,
  updateSchedule,
} from '../../db/schedule/schedule.ts';
import { AppError } from '../../errors/app-error.ts';
import { checkSchedule, type ScheduleCheck } from './check-schedule.ts';

export interface ChangeDependencies extends ScheduleCheck {
  /** Tells Temporal, and shows what is there then. */
  readonly tell: (key: ScheduleKey) => Promise<Schedule>;
}

export function scheduleNotFound(id: string): AppError {
  return new AppError('not_found', `there is no schedule ${id}`);
}

export function scheduleNameTaken(name: string): AppError {
  return new AppError(
    'state_conflict',
    `a schedule named ${name} exists; change that one or take another name`,
  );
}

function isDuplicate(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === '23505';
}

/** @param change what becomes of the body; null = nothing */
async function changeRow(
  db: Db,
  key: ScheduleKey,
  change: (row: ScheduleRow) => ScheduleRequest | null,
): Promise<void> {
  await db.transaction(async (trx) => {
    const row = await lockSchedule(trx, key);
    if (row === undefined) throw scheduleNotFound(key.schedule_id);
    const body = change(row);
    if (body !== null) await updateSchedule(trx, key.schedule_id, body);
  });
}

export function createChangeSchedule({ tell, ...checks }: ChangeDependencies) {
  const { db } = checks;
  const setPaused = async (key: ScheduleKey, paused: boolean): Promise<Schedule> => {
    await changeRow(db, key, ({ body }) => (body.paused === paused ? null : { ...body, paused }));
    return tell(key);
  };
  return {
    /** @throws AppError as `create`, and `not_found` */
    replace: async (key: ScheduleKey, request: ScheduleRequest): Promise<Schedule> => {
      await checkSchedule(checks, key.project_id, request);
      await changeRow(db, key, () => request).catch((error: unknown) => {
        throw isDuplicate(error) ? scheduleNameTaken(request.name) : error;
      });
      return tell(key);
    },

    pause: (project_id: string, schedule_id: string) => setPaused({ project_id, schedule_id }, true),

    resume: (project_id: string, schedule_id: string) => setPaused({ project_id, schedule_id }, false),
  };
}
