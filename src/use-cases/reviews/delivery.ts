/**
 * Notifies the workflow that waits for a review: a signal with the review and its version, retried until Temporal has
 * accepted it. A repeated signal does nothing. A review without a decision in time expires, with an entry in the audit
 * log, and is delivered like a decided one. A ladder without a run may have a decision before Temporal has accepted its
 * start: the decision is delivered later.
 */

import { AppError } from '@capstan/core/errors/app-error';
import type { WaitingWorkflow } from '../../clients/temporal/run-workflows.ts';
import type { Ctx } from '../../context.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import { readEscalation } from '../../db/escalation/escalation.ts';
import { readReview } from '../../db/review/review.ts';
import {
  type EndedReviewRow,
  expireReviews,
  listUndeliveredReviews,
  markReviewDelivered,
} from '../../db/review/review-delivery.ts';
import { readRunRef } from '../../db/run/run-delivery.ts';
import { type DeliveryKind, deliveryBatch, overdueMs } from '../../parts/delivery/deliveries.ts';

interface Expiring {
  readonly limit: number;
  /** Only this review; default: any. */
  readonly review_id?: string;
}

/** Uses the database's clock; an earlier decision wins. @returns how many expired */
export function expireOverdueReviews(db: Db, { limit, review_id }: Expiring): Promise<number> {
  return db.transaction(async (trx) => {
    const expired = await expireReviews(trx, limit, review_id);
    for (const { project_id, review_id: subject, version, round } of expired) {
      const act = { project_id, actor: 'maintenance', action: 'review.expired', subject };
      await insertAudit(trx, { ...act, data: { version, round } });
    }
    return expired.length;
  });
}

/** Expires reviews without a decision in time. @returns how many */
export function expireDueReviews({ db }: Pick<Ctx, 'db'>): Promise<number> {
  return expireOverdueReviews(db, { limit: deliveryBatch });
}

type Ended = Pick<EndedReviewRow, 'review_id'>;

/** Finds the workflow that waits for the review; null = none does. */
async function findWaiter(
  db: Db,
  { run_id, escalation_id }: Pick<EndedReviewRow, 'run_id' | 'escalation_id'>,
): Promise<WaitingWorkflow | null> {
  if (run_id !== null) return readRunRef(db, run_id);
  return escalation_id === null ? null : { escalation_id };
}

async function isYetToStart(db: Db, waiter: WaitingWorkflow): Promise<boolean> {
  if ('run_id' in waiter) return false;
  const row = await readEscalation(db, waiter.escalation_id);
  return row !== undefined && row.start_delivered_at === null && row.finished_at === null;
}

export const endedReviews: DeliveryKind<Ended> = {
  what: 'the end of a review',
  due: async ({ db }) => {
    const rows = await listUndeliveredReviews(db, overdueMs, deliveryBatch);
    return rows.map(({ review_id }) => ({ review_id }));
  },
  deliver: async ({ db, temporal, logger }, { review_id }) => {
    const row = await readReview(db, review_id);
    if (row === undefined || row.delivered_at !== null) return;
    if (row.state !== 'resolved' && row.state !== 'expired') return;
    const waiter = await findWaiter(db, row);
    if (waiter !== null) {
      const { version } = row;
      const isComing = await isYetToStart(db, waiter); // read first: it may start during the delivery
      const end = await temporal.workflows.signalReviewed(waiter, { review_id, version });
      if (end === 'gone' && isComing) {
        throw new AppError('unavailable', `the workflow of ${row.escalation_id} has not started yet`);
      }
      if (end === 'gone') logger.warn({ ...waiter, review_id }, 'nobody waits for this review any more');
    }
    await markReviewDelivered(db, review_id, row.version);
  },
};
