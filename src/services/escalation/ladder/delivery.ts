/**
 * Starts the workflows of ladders that are by themselves; the row is the truth, its start is repeated.
 *
 * Ladders by themselves that Temporal has forgotten go on from where their rows stand; those of steps are started
 * by their runs.
 */
import type { Logger } from 'pino';
import type { RunWorkflows } from '../../../clients/temporal/run-workflows.ts';
import type { Db } from '../../../db/connect.ts';
import {
  listUndeliveredEscalations,
  markEscalationDelivered,
  readEscalation,
} from '../../../db/escalation/escalation.ts';
import { forgetLadderStart, listDeliveredLadders } from '../../../db/escalation/escalation-transition.ts';
import { createDeliveries, createRestartForgotten, overdueMs } from '../../delivery/deliveries.ts';
import { readPosition } from './stored-ladder.ts';

export interface EscalationDelivery {
  /** Delivers in the background; a failure is left to maintenance. */
  startSoon(escalationId: string): void;
  /** @returns how many starts it made up for */
  deliverOverdue(): Promise<number>;
  /** Resolves when nothing is under way. */
  settled(): Promise<void>;
}

interface EscalationDeliveryDependencies {
  readonly db: Db;
  readonly workflows: Pick<RunWorkflows, 'startEscalation'>;
  readonly heartbeatTimeoutMs: number;
  /** The version of the ladders that are started from now on. */
  readonly engineVersion: number;
  readonly publicUrl: () => string;
  readonly logger: Logger;
}

interface Started {
  readonly escalation_id: string;
}

const batch = 200;

export function createEscalationDelivery({
  db,
  workflows,
  heartbeatTimeoutMs,
  engineVersion,
  publicUrl,
  logger,
}: EscalationDeliveryDependencies): EscalationDelivery {
  const start = async ({ escalation_id }: Started): Promise<void> => {
    const row = await readEscalation(db, escalation_id);
    if (row === undefined) return;
    const { transition, command } = await readPosition(db, row);
    await workflows.startEscalation(row, {
      engine_version: engineVersion,
      escalation_id,
      waits_for_reviews: true,
      from: { transition, command },
      heartbeat_timeout_ms: heartbeatTimeoutMs,
      url: `${publicUrl()}/v1/escalations/${escalation_id}`,
    });
    await markEscalationDelivered(db, escalation_id);
  };
  const deliveries = createDeliveries<Started>({ what: 'an escalation', deliver: start, logger });
  return {
    startSoon: (escalation_id) => deliveries.soon({ escalation_id }),
    deliverOverdue: async () => {
      const rows = await listUndeliveredEscalations(db, overdueMs, batch);
      return deliveries.each(rows.map(({ escalation_id }) => ({ escalation_id })));
    },
    settled: deliveries.settled,
  };
}

interface RestartLaddersDependencies {
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
