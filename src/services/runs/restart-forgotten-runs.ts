/**
 * Runs that Temporal has forgotten go on: a step that has succeeded answers with its result, one that waits looks at its
 * row.
 */
import type { Logger } from 'pino';
import type { RunWorkflows } from '../../clients/temporal/run-workflows.ts';
import type { Db } from '../../db/connect.ts';
import { forgetStart, listDelivered } from '../../db/run/run-open.ts';
import { createRestartForgotten, type Forgettable } from '../delivery/restart-forgotten.ts';
import type { RunDelivery } from './deliver-run.ts';

export interface RestartDependencies {
  readonly db: Db;
  readonly workflows: Pick<RunWorkflows, 'listRunning' | 'isForgotten'>;
  readonly delivery: Pick<RunDelivery, 'startSoon'>;
  readonly logger: Logger;
}

type DeliveredRun = Awaited<ReturnType<typeof listDelivered>>[number];

/** @returns how many it starts again */
export function createRestartForgottenRuns(
  { db, workflows, delivery, logger }: RestartDependencies,
  watch: Pick<Forgettable<DeliveredRun>, 'onKnown' | 'settled'> = {},
) {
  return createRestartForgotten<DeliveredRun>(db, logger, {
    what: 'a run',
    idOf: ({ run_id }) => run_id,
    list: listDelivered,
    listRunning: workflows.listRunning,
    isForgotten: workflows.isForgotten,
    forgetStart,
    startSoon: delivery.startSoon,
    ...watch,
  });
}
