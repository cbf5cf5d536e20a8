/** Schedules that Temporal has forgotten are told again; without, nothing would tell that they start nothing any more. */
import type { Logger } from 'pino';
import type { TemporalSchedules } from '../../clients/temporal/schedules.ts';
import type { Db } from '../../db/connect.ts';
import { listDeliveredSchedules, markScheduleForgotten } from '../../db/schedule/schedule-delivery.ts';
import { createRestartForgotten, type RestartForgotten } from '../delivery/restart-forgotten.ts';
import type { ScheduleDelivery } from './deliver-schedule.ts';

export interface RestartSchedulesDependencies {
  readonly db: Db;
  readonly schedules: Pick<TemporalSchedules, 'list' | 'nextTimes'>;
  readonly delivery: Pick<ScheduleDelivery, 'deliverSoon'>;
  readonly logger: Logger;
}

const answerMs = 5_000;

async function* idsOf(workflowIds: AsyncIterable<string>): AsyncGenerator<string, void, undefined> {
  for await (const id of workflowIds) yield id.slice(id.lastIndexOf('/') + 1);
}

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
