/**
 * Delivers the row of a schedule to Temporal. One process at a time delivers a schedule, so that an older state never
 * arrives after a newer one; it continues until there is no newer state. A schedule that Temporal holds under a former
 * payload key is delivered again, so that no schedule needs that key for ever. So are a schedule that Temporal has
 * forgotten, and one with planned starts that are a month old: they reach 400 days ahead, and zones change their rules.
 */

import { planStarts } from '@capstan/core/calendar/starts';
import { parseDuration } from '@capstan/core/duration';
import { within } from '@capstan/core/pacing';
import type { ScheduleOrder } from '../../clients/temporal/schedules.ts';
import {
  listDeliveredSchedules,
  listOldPlans,
  listUndeliveredSchedules,
  listUnderOtherKeys,
  markScheduleDelivered,
  markScheduleForgotten,
  readUndeliveredSchedule,
  type ScheduleRow,
  tryScheduleTurn,
} from '../../db/schedule.ts';
import {
  type DeliveryCtx,
  type DeliveryKind,
  deliverSoon,
  deliveryBatch,
  overdueMs,
} from '../../parts/delivery/deliveries.ts';

const patienceMs = 2_000;
/** Each delivery holds a database connection meanwhile. */
const atOnce = 3;

function toOrder(row: ScheduleRow): ScheduleOrder {
  const { project_id, schedule_id, workflow_id, body } = row;
  return {
    project_id,
    schedule_id,
    workflow_id,
    name: body.name,
    pipeline: body.pipeline,
    calendar: `"${body.cron}" in ${body.timezone}`,
    starts: planStarts(body.cron, { timezone: body.timezone, now: Date.now() }),
    overlap: body.overlap,
    catch_up_ms: parseDuration(body.catch_up),
    paused: body.paused,
    keeps_pause: row.delivered_version >= row.version,
  };
}

/** @returns whether there may be a newer state */
function deliverOne({ db, temporal }: DeliveryCtx, scheduleId: string): Promise<boolean> {
  const {
    schedules,
    payloadKeys: [payloadKey = ''],
  } = temporal;
  return db.transaction(async (trx) => {
    if (!(await tryScheduleTurn(trx, scheduleId))) return false;
    const row = await readUndeliveredSchedule(trx, scheduleId, payloadKey);
    if (row === undefined) return false;
    if (row.deleted_at === null) await schedules.put(toOrder(row));
    else await schedules.remove(row);
    await markScheduleDelivered(trx, row, payloadKey);
    return true;
  });
}

const answerMs = 5_000;

async function* idsOf(workflowIds: AsyncIterable<string>): AsyncGenerator<string, void, undefined> {
  for await (const id of workflowIds) yield id.slice(id.lastIndexOf('/') + 1);
}

/**
 * Delivers changes of schedules and of the payload key. Schedules that Temporal has forgotten are delivered again,
 * because they would silently start no more runs.
 */
export const changedSchedules: DeliveryKind<
  Pick<ScheduleRow, 'schedule_id'>,
  Pick<ScheduleRow, 'schedule_id' | 'workflow_id'>
> = {
  what: 'a schedule',
  atOnce,
  due: async ({ db, temporal }) => {
    const overdue = await listUndeliveredSchedules(db, overdueMs, deliveryBatch);
    const others = await listUnderOtherKeys(db, temporal.payloadKeys[0] ?? '', deliveryBatch);
    const old = await listOldPlans(db, deliveryBatch);
    return [...new Set([...overdue, ...others, ...old])].map((schedule_id) => ({ schedule_id }));
  },
  deliver: async (ctx, { schedule_id }) => {
    while (await deliverOne(ctx, schedule_id));
  },
  forgotten: {
    what: 'a schedule',
    idOf: ({ schedule_id }) => schedule_id,
    itemOf: (schedule_id) => ({ schedule_id }),
    list: listDeliveredSchedules,
    listRunning: ({ temporal }) => idsOf(temporal.schedules.list()),
    isForgotten: async ({ temporal }, row) => (await temporal.schedules.standing(row, answerMs)) === null,
    forgetStart: async (db, id) => {
      await markScheduleForgotten(db, id);
      return true;
    },
  },
};

/** Resolves after one attempt, or after two seconds; the delivery then continues in the background. */
export async function deliverSchedule(ctx: DeliveryCtx, schedule_id: string): Promise<void> {
  await within(deliverSoon(ctx, changedSchedules, { schedule_id }), patienceMs, () => null);
}
