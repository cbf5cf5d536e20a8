/**
 * Tells the workflow that waits for a review how it ended: a signal with the review and its version, repeated until
 * Temporal has taken it. A workflow that gets it twice does nothing the second time. A review that nobody decides in
 * time expires, which is delivered like a decision.
 */
import type { Logger } from 'pino';
import type { RunWorkflows, WaitingWorkflow } from '../../clients/temporal/run-workflows.ts';
import { insertAudit } from '../../db/audit.ts';
import type { Db } from '../../db/connect.ts';
import { readReview } from '../../db/review.ts';
import {
  type EndedReviewRow,
  expireReviews,
  listUndeliveredReviews,
  markReviewDelivered,
} from '../../db/review-delivery.ts';
import { createDeliveries } from '../deliveries.ts';

export interface ReviewDelivery {
  /** Delivers in the background; a failure is left to maintenance. */
  deliverSoon(reviewId: string): void;
  /** @returns how many were delivered */
  deliverOverdue(): Promise<number>;
  /** Ends what nobody decided in time. @returns how many */
  expireDue(): Promise<number>;
  /** Resolves when nothing is under way. */
  settled(): Promise<void>;
}

export interface ReviewDeliveryDependencies {
  readonly db: Db;
  readonly workflows: Pick<RunWorkflows, 'signalReviewed'>;
  readonly logger: Logger;
}

/** The process that took a decision delivers it within this time, or never. */
const overdueMs = 3_000;
const batch = 200;

type Ended = Pick<EndedReviewRow, 'review_id'>;

/** Whose workflow waits; null = nobody. */
const waiterOf = ({
  project_id,
  run_id,
  escalation_id,
}: Pick<EndedReviewRow, 'project_id' | 'run_id' | 'escalation_id'>): WaitingWorkflow | null => {
  if (run_id !== null) return { project_id, run_id };
  return escalation_id === null ? null : { project_id, escalation_id };
};

export const createReviewDelivery = ({
  db,
  workflows,
  logger,
}: ReviewDeliveryDependencies): ReviewDelivery => {
  const deliver = async ({ review_id }: Ended): Promise<void> => {
    const row = await readReview(db, review_id);
    if (row === undefined || row.delivered_at !== null) return;
    if (row.state !== 'resolved' && row.state !== 'expired') return;
    const waiter = waiterOf(row);
    if (waiter !== null) {
      const { version } = row;
      const end = await workflows.signalReviewed(waiter, { review_id, version });
      if (end === 'gone') logger.warn({ ...waiter, review_id }, 'nobody waits for this review any more');
    }
    await markReviewDelivered(db, review_id, row.version);
  };
  const deliveries = createDeliveries<Ended>({ what: 'the end of a review', deliver, logger });

  const expire = (): Promise<number> =>
    db.transaction(async (trx) => {
      const expired = await expireReviews(trx, batch);
      for (const { project_id, review_id: subject, version, round } of expired) {
        const act = { project_id, actor: 'maintenance', action: 'review.expired', subject };
        await insertAudit(trx, { ...act, data: { version, round } });
      }
      return expired.length;
    });

  return {
    deliverSoon: (review_id) => deliveries.soon({ review_id }),
    deliverOverdue: async () => {
      const rows = await listUndeliveredReviews(db, overdueMs, batch);
      return deliveries.each(rows.map(({ review_id }) => ({ review_id })));
    },
    expireDue: expire,
    settled: deliveries.settled,
  };
};
