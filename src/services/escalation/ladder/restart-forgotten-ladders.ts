/** Ladders by themselves that Temporal has forgotten go on from where their rows stand; those of steps are started by their runs. */
import type { Logger } from 'pino';
import type { RunWorkflows } from '../../../clients/temporal/run-workflows.ts';
import type { Db } from '../../../db/connect.ts';
import { forgetLadderStart, listDeliveredLadders } from '../../../db/escalation/escalation-open.ts';
import { createRestartForgotten } from '../../delivery/restart-forgotten.ts';
import type { EscalationDelivery } from './deliver-escalation.ts';

export interface RestartLaddersDependencies {
  readonly db: Db;
  readonly workflows: Pick<RunWorkflows, 'listRunningLadders' | 'isForgotten'>;
  readonly delivery: Pick<EscalationDelivery, 'startSoon'>;
  readonly logger: Logger;
}

/** @returns how many it starts again */
export function createRestartForgottenLadders({
  db,
  workflows,
  delivery,
  logger,
}: RestartLaddersDependencies) {
  return createRestartForgotten<{ readonly escalation_id: string }>(db, logger, {
    what: 'a ladder by itself',
    idOf: ({ escalation_id }) => escalation_id,
    list: listDeliveredLadders,
    listRunning: workflows.listRunningLadders,
    isForgotten: workflows.isForgotten,
    forgetStart: forgetLadderStart,
    startSoon: delivery.startSoon,
  });
}
