/** Schedules as users see them. Every change is a change of the row; Temporal is told of it, at once or later. */

import type { TemporalSchedules } from '../../clients/temporal/schedules.ts';
import type { Schedule, ScheduleRequest } from '../../contracts/schedule.ts';
import {
  deleteSchedule,
  insertSchedule,
  listSchedules,
  lockSchedule,
  readSchedule,
  type ScheduleRow,
  updateSchedule,
} from '../../db/schedule/schedule.ts';
import { markScheduleForgotten } from '../../db/schedule/schedule-delivery.ts';
import { AppError } from '../../errors/app-error.ts';
import { decodeCursor, type PageRequest, toPage } from '../cursor.ts';
import { newId } from '../ids.ts';
import { checkSchedule, type ScheduleCheck } from './check-schedule.ts';
import type { ScheduleDelivery } from './deliver-schedule.ts';
import { isDelivered, toSchedule } from './schedule-view.ts';

export interface ScheduleDependencies extends ScheduleCheck {
  readonly schedules: Pick<TemporalSchedules, 'trigger' | 'nextTimes'>;
  readonly delivery: Pick<ScheduleDelivery, 'deliverSoon'>;
}

/** A view does not wait longer for Temporal. */
const viewMs = 2_000;

function notFound(id: string): AppError {
  return new AppError('not_found', `there is no schedule ${id}`);
}

function nameTaken(name: string): AppError {
  return new AppError(
    'state_conflict',
    `a schedule named ${name} exists; change that one or take another name`,
  );
}

function isDuplicate(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === '23505';
}

export function createScheduleService(dependencies: ScheduleDependencies) {
  const { db, schedules, delivery } = dependencies;

  const require = async (projectId: string, id: string): Promise<ScheduleRow> => {
    const row = await readSchedule(db, id);
    if (row === undefined || row.project_id !== projectId) throw notFound(id);
    return row;
  };

  const view = async (row: ScheduleRow): Promise<Schedule> => {
    if (row.body.paused || !isDelivered(row)) return toSchedule(row, []);
    const times = await schedules.nextTimes(row, viewMs).catch(() => []);
    if (times !== null) return toSchedule(row, times);
    await markScheduleForgotten(db, row.schedule_id);
    return toSchedule({ ...row, delivered_version: 0 }, []);
  };

  const told = async (projectId: string, id: string): Promise<Schedule> => {
    await delivery.deliverSoon(id);
    return view(await require(projectId, id));
  };

  /** @param change what becomes of the body; null = nothing */
  const change = async (
    project_id: string,
    id: string,
    change: (row: ScheduleRow) => ScheduleRequest | null,
  ): Promise<Schedule> => {
    await db.transaction(async (trx) => {
      const row = await lockSchedule(trx, { project_id, schedule_id: id });
      if (row === undefined) throw notFound(id);
      const body = change(row);
      if (body !== null) await updateSchedule(trx, id, body);
    });
    return told(project_id, id);
  };

  const setPaused = (projectId: string, id: string, paused: boolean): Promise<Schedule> =>
    change(projectId, id, ({ body }) => (body.paused === paused ? null : { ...body, paused }));

  /** @throws AppError `unavailable` */
  const askForStart = async (row: ScheduleRow): Promise<void> => {
    const retryAfterS = 5;
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
  };

  return {
    /** @throws AppError `request_invalid`, `job_invalid`, `state_conflict` for a name that is taken */
    create: async (project_id: string, request: ScheduleRequest): Promise<Schedule> => {
      await checkSchedule(dependencies, project_id, request);
      const row = await insertSchedule(db, { project_id, schedule_id: newId('schedule') }, request);
      if (row === undefined) throw nameTaken(request.name);
      return told(project_id, row.schedule_id);
    },

    /** By name. */
    list: async (projectId: string, { limit, cursor }: PageRequest) => {
      const after = cursor === undefined ? null : decodeCursor(cursor);
      const rows = await listSchedules(db, projectId, { after, limit: limit + 1 });
      const page = toPage(rows, limit, { key: ({ name }) => name, item: (row) => row });
      return { ...page, items: await Promise.all(page.items.map(view)) };
    },

    /** @throws AppError `not_found` */
    get: async (projectId: string, id: string): Promise<Schedule> => view(await require(projectId, id)),

    /** @throws AppError as `create`, and `not_found` */
    replace: async (projectId: string, id: string, request: ScheduleRequest): Promise<Schedule> => {
      await require(projectId, id);
      await checkSchedule(dependencies, projectId, request);
      return change(projectId, id, () => request).catch((error: unknown) => {
        throw isDuplicate(error) ? nameTaken(request.name) : error;
      });
    },

    /** Its runs go on. @throws AppError `not_found` */
    remove: async (project_id: string, id: string): Promise<void> => {
      if (!(await deleteSchedule(db, { project_id, schedule_id: id }))) throw notFound(id);
      await delivery.deliverSoon(id);
    },

    pause: (projectId: string, id: string): Promise<Schedule> => setPaused(projectId, id, true),

    resume: (projectId: string, id: string): Promise<Schedule> => setPaused(projectId, id, false),

    /** Starts now, as its overlap policy allows. @throws AppError `state_conflict` while it is paused, `unavailable` */
    trigger: async (projectId: string, id: string): Promise<Schedule> => {
      const { body } = await require(projectId, id);
      if (body.paused)
        throw new AppError('state_conflict', `schedule ${body.name} is paused; resume it first`);
      await delivery.deliverSoon(id);
      const row = await require(projectId, id);
      await askForStart(row);
      return view(row);
    },
  };
}

export type ScheduleService = ReturnType<typeof createScheduleService>;
