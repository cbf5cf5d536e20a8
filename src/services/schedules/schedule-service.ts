/** Schedules as users see them. Every change is a change of the row; Temporal is told of it, at once or later. */

import type { TemporalSchedules } from '../../clients/temporal/schedules.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import type { Schedule, ScheduleRequest } from '../../contracts/schedule.ts';
import { scheduleWorkflowId } from '../../core/workflow-names.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import {
  deleteSchedule,
  insertSchedule,
  listSchedules,
  lockSchedule,
  markScheduleForgotten,
  readSchedule,
  type ScheduleKey,
  type ScheduleRow,
  updateSchedule,
} from '../../db/schedule.ts';
import { hasSqlState } from '../../db/statements.ts';
import { AppError } from '../../errors/app-error.ts';
import type { Caller } from '../access/caller.ts';
import { decodeCursor, type PageRequest, toPage } from '../cursor.ts';
import type { DeliveryCtx } from '../delivery/deliveries.ts';
import { newId } from '../ids.ts';
import { deliverSchedule } from './delivery.ts';
import { createNextTimes, isDelivered, showSchedule } from './schedule-view.ts';
import { checkSchedule, type ScheduleCheck } from './validation.ts';

interface ChangeDependencies extends ScheduleCheck {
  /** Tells Temporal, and shows what is there then. */
  readonly tell: (key: ScheduleKey) => Promise<Schedule>;
}

function scheduleNotFound(id: string): AppError {
  return new AppError('not_found', `there is no schedule ${id}`);
}

function scheduleNameTaken(name: string): AppError {
  return new AppError(
    'state_conflict',
    `a schedule named ${name} exists; change that one or take another name`,
  );
}

type ScheduleActor = Pick<Caller, 'project_id' | 'key_id'>;

interface ScheduleAct {
  readonly actor: string;
  readonly action: `schedule.${'created' | 'replaced' | 'paused' | 'resumed' | 'deleted'}`;
  /** What it is now, where that was given. */
  readonly body?: ScheduleRequest;
}

function noteSchedule(
  trx: Db,
  { project_id, schedule_id }: ScheduleKey,
  { actor, action, body }: ScheduleAct,
): Promise<void> {
  const data: JsonObject =
    body === undefined ? {} : { name: body.name, pipeline: body.pipeline, cron: body.cron };
  return insertAudit(trx, { project_id, actor, action, subject: schedule_id, data });
}

interface ScheduleChange extends ScheduleKey, ScheduleAct {
  /** What becomes of the body; null = nothing. */
  readonly change: (row: ScheduleRow) => ScheduleRequest | null;
}

async function changeRow(db: Db, { change, ...asked }: ScheduleChange): Promise<void> {
  await db.transaction(async (trx) => {
    const row = await lockSchedule(trx, asked);
    if (row === undefined) throw scheduleNotFound(asked.schedule_id);
    const body = change(row);
    if (body === null) return;
    await updateSchedule(trx, asked.schedule_id, body);
    await noteSchedule(trx, asked, asked);
  });
}

function createChangeSchedule({ tell, ...checks }: ChangeDependencies) {
  const { db } = checks;
  const setPaused = async (by: ScheduleActor, schedule_id: string, paused: boolean): Promise<Schedule> => {
    const key = { project_id: by.project_id, schedule_id };
    const act = { actor: by.key_id, action: paused ? 'schedule.paused' : 'schedule.resumed' } as const;
    const change = ({ body }: ScheduleRow) => (body.paused === paused ? null : { ...body, paused });
    await changeRow(db, { ...key, ...act, change });
    return tell(key);
  };
  return {
    /** @throws AppError as `create`, and `not_found` */
    replace: async (by: ScheduleActor, schedule_id: string, request: ScheduleRequest): Promise<Schedule> => {
      const key = { project_id: by.project_id, schedule_id };
      await checkSchedule(checks, by.project_id, request);
      const act = { actor: by.key_id, action: 'schedule.replaced', body: request } as const;
      await changeRow(db, { ...key, ...act, change: () => request }).catch((error: unknown) => {
        throw hasSqlState(error, 'unique_violation') ? scheduleNameTaken(request.name) : error;
      });
      return tell(key);
    },

    pause: (by: ScheduleActor, schedule_id: string) => setPaused(by, schedule_id, true),

    resume: (by: ScheduleActor, schedule_id: string) => setPaused(by, schedule_id, false),
  };
}

const retryAfterS = 5;

/** Asks Temporal for a start now, as the schedule's overlap policy allows. @throws AppError `unavailable` */
async function startSchedule(
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

interface ScheduleDependencies extends ScheduleCheck {
  readonly schedules: Pick<TemporalSchedules, 'trigger' | 'nextTimes'>;
  readonly deliveryCtx: DeliveryCtx;
}

/** The schedules of one project, and what becomes of one row. */
function createScheduleRows({ db, schedules, deliveryCtx }: ScheduleDependencies) {
  const require = async ({ project_id, schedule_id }: ScheduleKey): Promise<ScheduleRow> => {
    const row = await readSchedule(db, schedule_id);
    if (row === undefined || row.project_id !== project_id) throw scheduleNotFound(schedule_id);
    return row;
  };
  const view = (row: ScheduleRow): Promise<Schedule> => showSchedule(db, schedules, row);
  const tell = async (key: ScheduleKey): Promise<Schedule> => {
    await deliverSchedule(deliveryCtx, key.schedule_id);
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
  const { db, schedules, deliveryCtx } = dependencies;
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
      await deliverSchedule(deliveryCtx, schedule_id);
    },

    pause,
    resume,

    /** Starts now, as its overlap policy allows. @throws AppError `state_conflict` while it is paused, `unavailable` */
    trigger: async (project_id: string, schedule_id: string): Promise<Schedule> => {
      const { body } = await require({ project_id, schedule_id });
      if (body.paused)
        throw new AppError('state_conflict', `schedule ${body.name} is paused; resume it first`);
      await deliverSchedule(deliveryCtx, schedule_id);
      const row = await require({ project_id, schedule_id });
      await startSchedule(db, schedules, row);
      return view(row);
    },
  };
}

export type ScheduleService = ReturnType<typeof createScheduleService>;
