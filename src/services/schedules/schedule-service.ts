/** Schedules as users see them. Every change is a change of the row; Temporal is told of it, at once or later. */

import type { TemporalSchedules } from '../../clients/temporal/schedules.ts';
import type { Schedule, ScheduleRequest } from '../../contracts/schedule.ts';
import { scheduleWorkflowId } from '../../core/workflow-payloads/workflow-ids.ts';
import {
  deleteSchedule,
  insertSchedule,
  listSchedules,
  readSchedule,
  type ScheduleKey,
  type ScheduleRow,
} from '../../db/schedule/schedule.ts';
import { AppError } from '../../errors/app-error.ts';
import { decodeCursor, type PageRequest, toPage } from '../cursor.ts';
import { newId } from '../ids.ts';
import {
  createChangeSchedule,
  noteSchedule,
  type ScheduleActor,
  scheduleNameTaken,
  scheduleNotFound,
} from './change-schedule.ts';
import { checkSchedule, type ScheduleCheck } from './check-schedule.ts';
import type { ScheduleDelivery } from './deliver-schedule.ts';
import { createNextTimes } from './next-times.ts';
import { showSchedule } from './show-schedule.ts';
import { startSchedule } from './start-schedule.ts';

export interface ScheduleDependencies extends ScheduleCheck {
  readonly schedules: Pick<TemporalSchedules, 'trigger' | 'nextTimes'>;
  readonly delivery: Pick<ScheduleDelivery, 'deliverSoon'>;
}

/** The schedules of one project, and what becomes of one row. */
function createScheduleRows({ db, schedules, delivery }: ScheduleDependencies) {
  const require = async ({ project_id, schedule_id }: ScheduleKey): Promise<ScheduleRow> => {
    const row = await readSchedule(db, schedule_id);
    if (row === undefined || row.project_id !== project_id) throw scheduleNotFound(schedule_id);
    return row;
  };
  const view = (row: ScheduleRow): Promise<Schedule> => showSchedule(db, schedules, row);
  const tell = async (key: ScheduleKey): Promise<Schedule> => {
    await delivery.deliverSoon(key.schedule_id);
    return view(await require(key));
  };
  const listed = { nextTimes: createNextTimes(schedules) };
  const list = async (projectId: string, { limit, cursor }: PageRequest) => {
    const after = cursor === undefined ? null : decodeCursor(cursor);
    const rows = await listSchedules(db, projectId, { after, limit: limit + 1 });
    const page = toPage(rows, limit, { key: ({ name }) => name, item: (row) => row });
    return { ...page, items: await Promise.all(page.items.map((row) => showSchedule(db, listed, row))) };
  };
  return { require, view, tell, list };
}

export function createScheduleService(dependencies: ScheduleDependencies) {
  const { db, schedules, delivery } = dependencies;
  const { require, view, tell, list } = createScheduleRows(dependencies);
  const { replace, pause, resume } = createChangeSchedule({ ...dependencies, tell });

  return {
    /** @throws AppError `request_invalid`, `job_invalid`, `state_conflict` for a name that is taken */
    create: async ({ project_id, key_id }: ScheduleActor, request: ScheduleRequest): Promise<Schedule> => {
      await checkSchedule(dependencies, project_id, request);
      const schedule_id = newId('schedule');
      const workflow_id = scheduleWorkflowId(request.pipeline, schedule_id);
      const key = { project_id, schedule_id, workflow_id, created_by: key_id };
      await db.transaction(async (trx) => {
        const row = await insertSchedule(trx, key, request);
        if (row === undefined) throw scheduleNameTaken(request.name);
        await noteSchedule(trx, key, { actor: key_id, action: 'schedule.created', body: request });
      });
      return tell(key);
    },

    /** By name. */
    list,

    /** @throws AppError `not_found` */
    get: async (project_id: string, schedule_id: string): Promise<Schedule> =>
      view(await require({ project_id, schedule_id })),

    /** @throws AppError as `create`, and `not_found` */
    replace: async (by: ScheduleActor, schedule_id: string, request: ScheduleRequest): Promise<Schedule> => {
      await require({ project_id: by.project_id, schedule_id });
      return replace(by, schedule_id, request);
    },

    /** Its runs go on. @throws AppError `not_found` */
    remove: async ({ project_id, key_id }: ScheduleActor, schedule_id: string): Promise<void> => {
      const key = { project_id, schedule_id };
      await db.transaction(async (trx) => {
        if (!(await deleteSchedule(trx, key))) throw scheduleNotFound(schedule_id);
        await noteSchedule(trx, key, { actor: key_id, action: 'schedule.deleted' });
      });
      await delivery.deliverSoon(schedule_id);
    },

    pause,
    resume,

    /** Starts now, as its overlap policy allows. @throws AppError `state_conflict` while it is paused, `unavailable` */
    trigger: async (project_id: string, schedule_id: string): Promise<Schedule> => {
      const { body } = await require({ project_id, schedule_id });
      if (body.paused)
        throw new AppError('state_conflict', `schedule ${body.name} is paused; resume it first`);
      await delivery.deliverSoon(schedule_id);
      const row = await require({ project_id, schedule_id });
      await startSchedule(db, schedules, row);
      return view(row);
    },
  };
}

export type ScheduleService = ReturnType<typeof createScheduleService>;
