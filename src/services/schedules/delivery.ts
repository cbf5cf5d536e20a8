/**
 * Brings what a schedule's row says to Temporal. One process at a time delivers one schedule, so that an older
 * state never comes after a newer one; it goes on until nothing newer is there. A schedule that Temporal holds
 * under another payload key than the one that encrypts now is delivered again, so that no schedule needs a key for
 * ever; and so is one that Temporal has forgotten.
 */
import type { Logger } from 'pino';
import type { ScheduleOrder, TemporalSchedules } from '../../clients/temporal/schedules.ts';
import { parseDuration } from '../../core/duration.ts';
import { within } from '../../core/pacing.ts';
import type { Db } from '../../db/connect.ts';
import {
  listDeliveredSchedules,
  listUndeliveredSchedules,
  listUnderOtherKeys,
  markScheduleDelivered,
  markScheduleForgotten,
  readUndeliveredSchedule,
  type ScheduleRow,
  tryScheduleTurn,
} from '../../db/schedule.ts';
import {
  createDeliveries,
  createRestartForgotten,
  overdueMs,
  type RestartForgotten,
} from '../delivery/deliveries.ts';
import { readCron } from './cron.ts';

export interface ScheduleDelivery {
  /** Resolves when it was tried, or after two seconds; it goes on in the background. */
  deliverSoon(scheduleId: string): Promise<void>;
  /** @returns how many changes, of schedules and of the payload key, it made up for */
  deliverOverdue(): Promise<number>;
  /** Resolves when nothing is under way. */
  settled(): Promise<void>;
}

const patienceMs = 2_000;
const batch = 200;
/** Each holds a connection to the database while Temporal is told. */
const atOnce = 3;

function toOrder({ project_id, schedule_id, workflow_id, body }: ScheduleRow): ScheduleOrder {
  return {
    project_id,
    schedule_id,
    workflow_id,
    name: body.name,
    pipeline: body.pipeline,
    cron: readCron(body.cron),
    timezone: body.timezone,
    overlap: body.overlap,
    catch_up_ms: parseDuration(body.catch_up),
    paused: body.paused,
  };
}

interface ScheduleDeliveryDependencies {
  readonly db: Db;
  readonly schedules: Pick<TemporalSchedules, 'put' | 'remove'>;
  /** The id of the key by which `put` encrypts; '' = by none. */
  readonly payloadKey: string;
  readonly logger: Logger;
}

export function createScheduleDelivery({
  db,
  schedules,
  payloadKey,
  logger,
}: ScheduleDeliveryDependencies): ScheduleDelivery {
  /** @returns whether something newer may be there */
  const deliverOne = (scheduleId: string): Promise<boolean> =>
    db.transaction(async (trx) => {
      if (!(await tryScheduleTurn(trx, scheduleId))) return false;
      const row = await readUndeliveredSchedule(trx, scheduleId, payloadKey);
      if (row === undefined) return false;
      if (row.deleted_at === null) await schedules.put(toOrder(row));
      else await schedules.remove(row);
      await markScheduleDelivered(trx, row, payloadKey);
      return true;
    });

  const deliveries = createDeliveries<{ readonly schedule_id: string }>({
    what: 'a schedule',
    deliver: async ({ schedule_id }) => {
      while (await deliverOne(schedule_id));
    },
    logger,
    atOnce,
  });

  return {
    deliverSoon: (schedule_id) => within(deliveries.soon({ schedule_id }), patienceMs, () => undefined),
    deliverOverdue: async () => {
      const overdue = await listUndeliveredSchedules(db, overdueMs, batch);
      const others = await listUnderOtherKeys(db, payloadKey, batch);
      return deliveries.each([...overdue, ...others].map((schedule_id) => ({ schedule_id })));
    },
    settled: deliveries.settled,
  };
}

interface RestartSchedulesDependencies {
  readonly db: Db;
  readonly schedules: Pick<TemporalSchedules, 'list' | 'nextTimes'>;
  readonly delivery: Pick<ScheduleDelivery, 'deliverSoon'>;
  readonly logger: Logger;
}

const answerMs = 5_000;

async function* idsOf(workflowIds: AsyncIterable<string>): AsyncGenerator<string, void, undefined> {
  for await (const id of workflowIds) yield id.slice(id.lastIndexOf('/') + 1);
}

/** Schedules that Temporal has forgotten are told again; without, nothing would tell that they start nothing any more. */
export function createRestartForgottenSchedules({
  db,
  schedules,
  delivery,
  logger,
}: RestartSchedulesDependencies): RestartForgotten {
  return createRestartForgotten<Awaited<ReturnType<typeof listDeliveredSchedules>>[number]>(db, logger, {
    what: 'a schedule',
    idOf: ({ schedule_id }) => schedule_id,
    list: listDeliveredSchedules,
    listRunning: () => idsOf(schedules.list()),
    isForgotten: async (row) => (await schedules.nextTimes(row, answerMs)) === null,
    forgetStart: async (trx, id) => {
      await markScheduleForgotten(trx, id);
      return true;
    },
    startSoon: (id) => void delivery.deliverSoon(id),
  });
}
