/** Schedules as users see them. A change is a change of the row, which is delivered to Temporal at once or later. */

import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { Schedule, ScheduleGap, ScheduleRequest } from '@capstan/core/contracts/schedule';
import { AppError } from '@capstan/core/errors/app-error';
import { scheduleWorkflowId } from '@capstan/core/workflow-names';
import type { ServerCtx } from '../../context.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import {
  deleteSchedule,
  type GapRow,
  insertSchedule,
  listGaps,
  listSchedules,
  lockSchedule,
  readSchedule,
  type ScheduleKey,
  type ScheduleRow,
  updateSchedule,
} from '../../db/schedule.ts';
import { hasSqlState } from '../../db/statements.ts';
import { newId } from '../../parts/ids.ts';
import type { Caller } from '../access/caller.ts';
import { decodeCursor, type PageRequest, toPage } from '../cursor.ts';
import { deliverSchedule } from './delivery.ts';
import { showSchedules, viewMs } from './schedule-view.ts';
import { checkSchedule } from './validation.ts';

function scheduleNotFound(id: string): AppError {
  return new AppError('not_found', `there is no schedule ${id}`);
}

function scheduleNameTaken(name: string): AppError {
  return new AppError(
    'state_conflict',
    `a schedule named ${name} exists already; change it or use another name`,
  );
}

type ScheduleActor = Pick<Caller, 'project_id' | 'key_id'>;

interface ScheduleAct {
  readonly actor: string;
  readonly action: `schedule.${'created' | 'replaced' | 'paused' | 'resumed' | 'deleted'}`;
  /** The current body, where the request gave it. */
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
  /** Gives the new body; null = no change. */
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

/** @throws AppError `not_found` */
export async function requireSchedule(
  { db }: Pick<ServerCtx, 'db'>,
  { project_id, schedule_id }: ScheduleKey,
): Promise<ScheduleRow> {
  const row = await readSchedule(db, schedule_id);
  if (row === undefined || row.project_id !== project_id) throw scheduleNotFound(schedule_id);
  return row;
}

/** Shows the schedule as Temporal has it at this moment. @param ms how long it is waited for */
export async function showFresh(
  { db, temporal: { schedules } }: ServerCtx,
  row: ScheduleRow,
  ms = viewMs,
): Promise<Schedule> {
  const [schedule] = await showSchedules({ db, standing: schedules.standing, ms }, [row]);
  if (schedule === undefined) throw scheduleNotFound(row.schedule_id);
  return schedule;
}

/** @throws AppError `not_found` */
export async function getSchedule(ctx: ServerCtx, key: ScheduleKey): Promise<Schedule> {
  return showFresh(ctx, await requireSchedule(ctx, key));
}

/** Delivers the row to Temporal, and shows the result. */
async function tellSchedule(ctx: ServerCtx, key: ScheduleKey): Promise<Schedule> {
  await deliverSchedule(ctx, key.schedule_id);
  return getSchedule(ctx, key);
}

/** By name. */
export async function listSchedulesPage(
  ctx: Pick<ServerCtx, 'db' | 'standing'>,
  projectId: string,
  { limit, cursor }: PageRequest,
) {
  const after = cursor === undefined ? null : decodeCursor(cursor);
  const rows = await listSchedules(ctx.db, projectId, { after, limit: limit + 1 });
  const page = toPage(rows, limit, { key: ({ name }) => name, item: (row) => row });
  return { ...page, items: await showSchedules(ctx, page.items) };
}

function toGap({ created_at, moments, ...row }: GapRow): ScheduleGap {
  return { ...row, moments: moments.map((at) => at.toISOString()), at: created_at.toISOString() };
}

/** Newest first. @throws AppError `not_found` */
export async function listGapsOf(
  ctx: Pick<ServerCtx, 'db'>,
  key: ScheduleKey,
  { limit, cursor }: PageRequest,
) {
  await requireSchedule(ctx, key);
  const after = cursor === undefined ? null : decodeCursor(cursor);
  const rows = await listGaps(ctx.db, key.schedule_id, { after, limit: limit + 1 });
  return toPage(rows, limit, { key: ({ gap_id }) => gap_id, item: toGap });
}

/** @throws AppError `request_invalid`, `job_invalid`, `state_conflict` for a name that is in use */
export async function createSchedule(
  ctx: ServerCtx,
  { project_id, key_id }: ScheduleActor,
  request: ScheduleRequest,
): Promise<Schedule> {
  await checkSchedule(ctx, project_id, request);
  const schedule_id = newId('schedule');
  const workflow_id = scheduleWorkflowId(request.pipeline, schedule_id);
  const key = { project_id, schedule_id, workflow_id, created_by: key_id };
  await ctx.db.transaction(async (trx) => {
    const row = await insertSchedule(trx, key, request);
    if (row === undefined) throw scheduleNameTaken(request.name);
    await noteSchedule(trx, key, { actor: key_id, action: 'schedule.created', body: request });
  });
  return tellSchedule(ctx, key);
}

/** The schedule to change, and the actor who changes it. */
interface ScheduleTarget {
  readonly by: ScheduleActor;
  readonly schedule_id: string;
}

/** @throws AppError as `createSchedule`, and `not_found` */
export async function replaceSchedule(
  ctx: ServerCtx,
  { by: { project_id, key_id: actor }, schedule_id }: ScheduleTarget,
  request: ScheduleRequest,
): Promise<Schedule> {
  const key = { project_id, schedule_id };
  await requireSchedule(ctx, key);
  await checkSchedule(ctx, project_id, request);
  const act = { actor, action: 'schedule.replaced', body: request } as const;
  await changeRow(ctx.db, { ...key, ...act, change: () => request }).catch((error: unknown) => {
    throw hasSqlState(error, 'unique_violation') ? scheduleNameTaken(request.name) : error;
  });
  return tellSchedule(ctx, key);
}

/** A repeated pause changes nothing. A resume is always sent: it also ends a pause in Temporal. @throws AppError `not_found` */
export async function setSchedulePaused(
  ctx: ServerCtx,
  { by: { project_id, key_id: actor }, schedule_id }: ScheduleTarget,
  paused: boolean,
): Promise<Schedule> {
  const key = { project_id, schedule_id };
  const act = { actor, action: paused ? 'schedule.paused' : 'schedule.resumed' } as const;
  const change = ({ body }: ScheduleRow) => (paused && body.paused ? null : { ...body, paused });
  await changeRow(ctx.db, { ...key, ...act, change });
  return tellSchedule(ctx, key);
}

/** Deletes the schedule; its runs continue. @throws AppError `not_found` */
export async function removeSchedule(
  ctx: ServerCtx,
  { by: { project_id, key_id: actor }, schedule_id }: ScheduleTarget,
): Promise<void> {
  const key = { project_id, schedule_id };
  await ctx.db.transaction(async (trx) => {
    if (!(await deleteSchedule(trx, key))) throw scheduleNotFound(schedule_id);
    await noteSchedule(trx, key, { actor, action: 'schedule.deleted' });
  });
  await deliverSchedule(ctx, schedule_id);
}
