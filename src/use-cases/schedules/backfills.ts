/**
 * Starts a schedule for a range of its calendar, oldest first, with so many open runs at a time. The row decides how
 * far it is, and each moment has one run, by the calendar, this backfill, another one, or this one again
 * after a crash. The overlap policy does not hold for it, nor does the calendar see its runs. A moment that was missed in
 * an outage gets its run.
 */
import { nextStarts } from '@capstan/core/calendar/starts';
import type { Backfill, BackfillRequest } from '@capstan/core/contracts/schedule';
import { AppError, refuseField } from '@capstan/core/errors/app-error';
import type { ServerCtx } from '../../context.ts';
import { insertAudit } from '../../db/access/audit.ts';
import {
  type BackfillView,
  endBackfill,
  findBackfill,
  hasRunAt,
  insertBackfill,
  listBackfills,
  listRunningBackfills,
  noteWaiting,
  passMoment,
} from '../../db/run/backfill.ts';
import { readSchedule, type ScheduleKey, type ScheduleRow } from '../../db/schedule.ts';
import { deliverSoon } from '../../parts/delivery/deliveries.ts';
import { newId } from '../../parts/ids.ts';
import type { Caller } from '../access/caller.ts';
import { decodeCursor, type PageRequest, toPage } from '../cursor.ts';
import { insertAdmittedRun } from '../runs/admission.ts';
import { runStarts } from '../runs/delivery.ts';
import { prepareOriginatedRun } from '../runs/submission.ts';
import {
  countStarts,
  isLimit,
  isRefusal,
  originAt,
  recordFruitlessStart,
  toRequest,
} from './scheduled-runs.ts';
import { requireSchedule } from './schedules.ts';

const mostMoments = 10_000;
const longestMs = 5 * 366 * 86_400_000;

function toBackfill(row: BackfillView): Backfill {
  const { backfill_id, schedule_id, at_once, state, moments, existing, passed, waits, created_by } = row;
  const { open, succeeded, failed, cancelled } = row;
  return {
    backfill_id,
    schedule_id,
    from: row.from_at.toISOString(),
    until: row.until_at.toISOString(),
    at_once,
    state,
    moments,
    existing,
    runs: { open, succeeded, failed, cancelled },
    left: Math.max(0, moments - passed),
    waits,
    created_by,
    created_at: row.created_at.toISOString(),
    finished_at: row.finished_at?.toISOString() ?? null,
  };
}

/** @throws AppError `request_invalid` */
function countMoments({ body }: ScheduleRow, { from, until }: BackfillRequest): number {
  const [after, last] = [Date.parse(from) - 1, Date.parse(until)];
  if (last > Date.now()) throw refuseField('/until', 'is in the future; the calendar itself starts those');
  if (last <= after) throw refuseField('/until', 'is before from');
  if (last - after > longestMs) throw refuseField('/until', 'is more than five years after from');
  const { cron, timezone } = body;
  const starts = nextStarts(cron, { timezone, after, count: mostMoments + 1 }).filter((at) => at <= last);
  if (starts.length > mostMoments)
    throw refuseField('/until', `the range has more than ${mostMoments} starts; take a shorter one`);
  if (starts.length === 0) throw refuseField('/until', `"${cron}" in ${timezone} has no start in the range`);
  return starts.length;
}

type Actor = Pick<Caller, 'project_id' | 'key_id'>;

/** @throws AppError `not_found`, `request_invalid` for a range without a start, with too many, or in the future */
export async function createBackfill(
  ctx: ServerCtx,
  { project_id, key_id }: Actor,
  { schedule_id, ...request }: BackfillRequest & Pick<ScheduleKey, 'schedule_id'>,
): Promise<Backfill> {
  const row = await requireSchedule(ctx, { project_id, schedule_id });
  const moments = countMoments(row, request);
  const { from, until, at_once } = request;
  const key = { schedule_id, backfill_id: newId('backfill') };
  await ctx.db.transaction(async (trx) => {
    const range = { from_at: from, until_at: until };
    await insertBackfill(trx, { ...key, project_id, at_once, moments, created_by: key_id, ...range });
    const entry = { project_id, actor: key_id, action: 'schedule.backfilled', subject: schedule_id };
    await insertAudit(trx, { ...entry, data: { from, until, at_once } });
  });
  return getBackfill(ctx, { project_id, ...key });
}

interface BackfillKey extends ScheduleKey {
  readonly backfill_id: string;
}

/** @throws AppError `not_found` */
export async function getBackfill(ctx: Pick<ServerCtx, 'db'>, key: BackfillKey): Promise<Backfill> {
  await requireSchedule(ctx, key);
  const row = await findBackfill(ctx.db, key);
  if (row === undefined)
    throw new AppError('not_found', `there is no backfill ${key.backfill_id} of this schedule`);
  return toBackfill(row);
}

/** Newest first. @throws AppError `not_found` */
export async function listBackfillsOf(
  ctx: Pick<ServerCtx, 'db'>,
  key: ScheduleKey,
  { limit, cursor }: PageRequest,
) {
  await requireSchedule(ctx, key);
  const after = cursor === undefined ? null : decodeCursor(cursor);
  const rows = await listBackfills(ctx.db, key.schedule_id, { after, limit: limit + 1 });
  return toPage(rows, limit, { key: (row) => row.backfill_id, item: toBackfill });
}

/** Starts nothing more; its open runs continue. A repeated request changes nothing. @throws AppError `not_found` */
export async function cancelBackfill(
  ctx: Pick<ServerCtx, 'db'>,
  key: BackfillKey & { readonly by: string },
): Promise<Backfill> {
  await getBackfill(ctx, key);
  const { project_id, by: actor, schedule_id: subject, backfill_id } = key;
  await ctx.db.transaction(async (trx) => {
    if (!(await endBackfill(trx, backfill_id, 'cancelled'))) return;
    await insertAudit(trx, {
      project_id,
      actor,
      action: 'schedule.backfill_cancelled',
      subject,
      data: { backfill_id },
    });
  });
  return getBackfill(ctx, key);
}

/** @returns false when the next moment has to wait, or the backfill was ended */
async function startMoment(
  ctx: ServerCtx,
  { row, backfill, at }: { readonly row: ScheduleRow; readonly backfill: BackfillView; readonly at: Date },
): Promise<boolean> {
  const { db, config, telemetry } = ctx;
  const { backfill_id, created_by: by } = backfill;
  const scheduled_at = at.toISOString();
  const origin = { ...originAt(row, scheduled_at), backfill_id };
  try {
    const request = toRequest(row.body);
    const prepared = await prepareOriginatedRun(ctx, row.project_id, { request, origin, by });
    const isStarted = await db.transaction(async (trx) => {
      if (!(await passMoment(trx, backfill, { at, existing: false }))) return false;
      await insertAdmittedRun(trx, prepared, config.OPEN_RUNS_PER_PROJECT);
      return true;
    });
    if (!isStarted) return false;
    countStarts(telemetry.metrics, 'started');
    void deliverSoon(ctx, runStarts, { run_id: prepared.row.run_id });
    return true;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    if (isLimit(error)) {
      await noteWaiting(db, backfill_id, `${scheduled_at}: ${error.message}`);
      return false;
    }
    const { code, message } = error;
    await recordFruitlessStart(ctx, row, {
      scheduled_at,
      backfill_id,
      outcome: 'refused',
      error: { code, message },
    });
    return passMoment(db, backfill, { at, existing: false });
  }
}

/** Moments of a backfill that are looked at together. */
const batch = 200;

/** @returns how many runs it started */
async function fillOne(ctx: ServerCtx, backfill: BackfillView): Promise<number> {
  const { db } = ctx;
  const { backfill_id, schedule_id, from_at, until_at, passed_until, at_once, open } = backfill;
  const row = await readSchedule(db, schedule_id);
  if (row === undefined) {
    await endBackfill(db, backfill_id, 'cancelled');
    return 0;
  }
  const after = passed_until?.getTime() ?? from_at.getTime() - 1;
  const { cron, timezone } = row.body;
  const due = nextStarts(cron, { timezone, after, count: batch }).filter((at) => at <= until_at.getTime());
  if (due.length === 0 && open === 0) await endBackfill(db, backfill_id, 'done');
  let started = 0;
  for (const at of due.map((ms) => new Date(ms))) {
    if (await hasRunAt(db, schedule_id, at)) {
      if (!(await passMoment(db, backfill, { at, existing: true }))) break;
      continue;
    }
    if (open + started >= at_once || !(await startMoment(ctx, { row, backfill, at }))) break;
    started += 1;
  }
  return started;
}

const mostBackfills = 100;

/** Starts what is due of all backfills. One that fails, as while the database is busy, does not delay the others. */
export async function fillBack(ctx: ServerCtx): Promise<number> {
  let started = 0;
  for (const backfill of await listRunningBackfills(ctx.db, mostBackfills)) {
    started += await fillOne(ctx, backfill).catch((err: unknown) => {
      ctx.logger.warn({ err, backfill_id: backfill.backfill_id }, 'a backfill does not continue for now');
      return 0;
    });
  }
  return started;
}
