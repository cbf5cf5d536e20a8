/**
 * Starts the workflows of ladders without a run; the row decides, and its start is retried.
 *
 * Ladders without a run that Temporal has forgotten continue from their rows; those of steps are started by their runs.
 */
import {
  listUndeliveredEscalations,
  markEscalationDelivered,
  readEscalation,
} from '../../../db/escalation/escalation.ts';
import { forgetLadderStart, listDeliveredLadders } from '../../../db/escalation/escalation-transition.ts';
import { type DeliveryKind, deliveryBatch, overdueMs } from '../../../parts/delivery/deliveries.ts';
import { readPosition } from './stored-ladder.ts';

interface LadderItem {
  readonly escalation_id: string;
}

export const ladderStarts: DeliveryKind<LadderItem, LadderItem> = {
  what: 'an escalation',
  due: async ({ db }) => {
    const rows = await listUndeliveredEscalations(db, overdueMs, deliveryBatch);
    return rows.map(({ escalation_id }) => ({ escalation_id }));
  },
  deliver: async ({ db, temporal, config, publicUrl }, { escalation_id }) => {
    const row = await readEscalation(db, escalation_id);
    if (row === undefined) return;
    const { transition, command } = await readPosition(db, row);
    await temporal.workflows.startEscalation(row, {
      engine_version: config.ENGINE_VERSION,
      escalation_id,
      waits_for_reviews: true,
      from: { transition, command },
      heartbeat_timeout_ms: config.HEARTBEAT_TIMEOUT_MS,
      url: `${publicUrl()}/v1/escalations/${escalation_id}`,
    });
    await markEscalationDelivered(db, escalation_id);
  },
  forgotten: {
    what: 'a ladder by itself',
    idOf: ({ escalation_id }) => escalation_id,
    itemOf: (escalation_id) => ({ escalation_id }),
    list: listDeliveredLadders,
    listRunning: ({ temporal }) => temporal.workflows.listRunningLadders(),
    isForgotten: ({ temporal }, ladder) => temporal.workflows.isForgotten(ladder),
    forgetStart: forgetLadderStart,
  },
};
