/**
 * Starts a schedule now. For the policies skip and allow_all, the row decides: the run is written in one transaction
 * with the answer, and the caller gets the problem of a start that is refused. The other policies are Temporal's, which
 * must see the start: it is asked after the same checks.
 */
import { createHash, randomInt, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Schedule } from '@capstan/core/contracts/schedule';
import { AppError } from '@capstan/core/errors/app-error';
import type { ServerCtx } from '../../context.ts';
import {
  lockSchedule,
  markScheduleForgotten,
  type ScheduleKey,
  type ScheduleRow,
} from '../../db/schedule.ts';
import { deliverSoon } from '../../parts/delivery/deliveries.ts';
import { answerOnce, type Idempotency, type KeepAnswer } from '../idempotency.ts';
import { insertAdmittedRun } from '../runs/admission.ts';
import { runStarts } from '../runs/delivery.ts';
import { prepareOriginatedRun } from '../runs/submission.ts';
import { deliverSchedule } from './delivery.ts';
import { isDelivered } from './schedule-view.ts';
import { countStarts, explainSkip, originAt, toRequest } from './scheduled-runs.ts';
import { requireSchedule, showFresh } from './schedules.ts';

export interface TriggerOrder extends ScheduleKey {
  readonly idempotency: Idempotency | null;
  /** Id of the key or person. */
  readonly by: string;
}

const deliveryMs = 10_000;
const pauseMs = 100;

/** Waits until Temporal has the row, which another request or process may be delivering. */
async function awaitDelivery(ctx: ServerCtx, key: ScheduleKey): Promise<ScheduleRow> {
  const until = performance.now() + deliveryMs;
  for (;;) {
    await deliverSchedule(ctx, key.schedule_id);
    const row = await requireSchedule(ctx, key);
    if (isDelivered(row) || performance.now() > until) return row;
    await sleep(pauseMs);
  }
}

const retryAfterS = 5;

/** @throws AppError `unavailable` */
async function askTemporal({ db, temporal }: ServerCtx, row: ScheduleRow, requestId: string): Promise<void> {
  if (!isDelivered(row)) {
    const message = `Temporal does not know the schedule ${row.body.name} yet`;
    throw new AppError('unavailable', message, { retryAfterS });
  }
  const { overlap } = row.body;
  const asked = await temporal.schedules.trigger(row, overlap, requestId).catch((cause: unknown) => {
    throw new AppError('unavailable', 'Temporal does not answer', { cause, retryAfterS });
  });
  if (asked === 'asked') return;
  await markScheduleForgotten(db, row.schedule_id);
  const message = `Temporal had forgotten the schedule ${row.body.name}; it is told again`;
  throw new AppError('unavailable', message, { retryAfterS });
}

/** @throws AppError `state_conflict` while it is paused, here or in Temporal */
function refusePaused({ name, paused, paused_in_temporal: reason }: Schedule): void {
  if (paused) throw new AppError('state_conflict', `schedule ${name} is paused; resume it first`);
  if (reason === undefined) return;
  const message = `schedule ${name} was paused in Temporal (${reason}); resume it first`;
  throw new AppError('state_conflict', message);
}

/**
 * Temporal names a start by its second, and takes two of one second as one. So each request waits for the next second,
 * one after the other, and for none in which the calendar may start.
 */
function untilOwnSecond(now: number): number {
  const next = (Math.floor(now / 1_000) + 1) * 1_000;
  return (next % 60_000 === 0 ? next + 1_000 : next) - now;
}

const ownPolicies: ReadonlySet<Schedule['overlap']> = new Set(['skip', 'allow_all']);

/** Repeated requests with a key reach Temporal under one id; others under ids of their own. */
function toRequestId({ project_id, schedule_id, idempotency }: TriggerOrder): string {
  const key = idempotency?.key ?? randomUUID();
  return createHash('sha256')
    .update(JSON.stringify([project_id, schedule_id, key]))
    .digest('hex');
}

/** Starts of one schedule within a millisecond differ in their microseconds. */
function toMoment(now: number): string {
  return new Date(now).toISOString().replace('Z', `${randomInt(1, 1_000).toString().padStart(3, '0')}Z`);
}

async function trigger(ctx: ServerCtx, order: TriggerOrder, keep: KeepAnswer): Promise<Schedule> {
  const { db, config, telemetry } = ctx;
  const { project_id, by } = order;
  const row = await requireSchedule(ctx, order);
  const schedule = await showFresh(ctx, row, deliveryMs); // a slow Temporal may know that it is paused
  refusePaused(schedule);
  const scheduled_at = toMoment(Date.now());
  const origin = originAt(row, scheduled_at);
  const prepared = await prepareOriginatedRun(ctx, project_id, { request: toRequest(row.body), origin, by });
  if (!ownPolicies.has(row.body.overlap)) {
    const delivered = await awaitDelivery(ctx, order);
    await db.transaction(async (trx) => {
      await keep(trx, 202, schedule);
      await lockSchedule(trx, order);
      await sleep(untilOwnSecond(Date.now()));
      await askTemporal(ctx, delivered, toRequestId(order));
    });
    return schedule;
  }
  const { run_id } = prepared.row;
  const answer: Schedule = {
    ...schedule,
    last_start: { scheduled_at, run_id, state: 'queued', error: null },
  };
  await db.transaction(async (trx) => {
    await keep(trx, 202, answer);
    const skipped = await explainSkip(trx, order);
    if (skipped !== null) throw new AppError('state_conflict', skipped);
    await insertAdmittedRun(trx, prepared, config.OPEN_RUNS_PER_PROJECT);
  });
  countStarts(telemetry.metrics, 'started');
  void deliverSoon(ctx, runStarts, { run_id });
  return answer;
}

/** @throws AppError as a request for a run, `state_conflict` while it is paused or its policy skips, `unavailable` */
export async function triggerSchedule(
  ctx: ServerCtx,
  order: TriggerOrder,
): Promise<{ readonly schedule: Schedule; readonly replayed: boolean }> {
  const { project_id, schedule_id, idempotency } = order;
  const request = `POST /v1/schedules/${schedule_id}/trigger`;
  const work = (keep: KeepAnswer) => trigger(ctx, order, keep);
  const { answer, replayed } = await answerOnce<Schedule>(ctx.db, { project_id, request, idempotency, work });
  return { schedule: answer, replayed };
}
