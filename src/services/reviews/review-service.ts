/** Reviews as people see them: list, show, claim, release, decide. */
import type { Review, ReviewQuery, ReviewSummary } from '../../contracts/review.ts';
import type { Db } from '../../db/connect.ts';
import { claimReview, releaseReview } from '../../db/review/review.ts';
import { listReviews } from '../../db/review/review-list.ts';
import type { Caller } from '../access/caller.ts';
import { decodeCursor, toPage } from '../cursor.ts';
import { createDecideReview, type Decided, type DecisionOrder, requireReview } from './decide-review.ts';
import type { ReviewDelivery } from './deliver-review.ts';
import { toConflict } from './review-conflict.ts';
import type { CheckDecision } from './review-input.ts';
import { toReview, toReviewSummary } from './review-view.ts';

export interface ReviewDependencies {
  readonly db: Db;
  readonly checkDecision: CheckDecision;
  readonly delivery: Pick<ReviewDelivery, 'deliverSoon'>;
}

/** A claim that is not prolonged ends after it. */
const leaseMs = 900_000;

export function createReviewService(dependencies: ReviewDependencies) {
  const { db, delivery } = dependencies;
  const decideReview = createDecideReview(dependencies);

  return {
    list: async (
      projectId: string,
      { cursor, limit, ...filter }: ReviewQuery,
    ): Promise<{ items: ReviewSummary[]; next_cursor: string | null }> => {
      const after = cursor === undefined ? undefined : decodeCursor(cursor);
      const rows = await listReviews(db, projectId, { ...filter, after, limit: limit + 1 });
      return toPage(rows, limit, { key: ({ review_id }) => review_id, item: toReviewSummary });
    },

    /** @throws AppError `not_found` */
    get: async (projectId: string, reviewId: string): Promise<Review> =>
      toReview(await requireReview(db, projectId, reviewId)),

    /**
     * Keeps others from deciding for 15 min; repeated by the same key, for another 15.
     * @throws AppError `not_found`, `state_conflict`
     */
    claim: async ({ project_id, key_id }: Caller, reviewId: string): Promise<Review> => {
      const claimed = await claimReview(db, {
        project_id,
        review_id: reviewId,
        by: key_id,
        lease_ms: leaseMs,
      });
      if (claimed !== undefined) return toReview(claimed);
      throw toConflict(await requireReview(db, project_id, reviewId), null);
    },

    /** @throws AppError `not_found`, `state_conflict` when the key does not hold the claim */
    release: async ({ project_id, key_id }: Caller, reviewId: string): Promise<Review> => {
      const released = await releaseReview(db, { project_id, review_id: reviewId, by: key_id });
      if (released !== undefined) return toReview(released);
      throw toConflict(await requireReview(db, project_id, reviewId), null);
    },

    decide: async (caller: Caller, order: DecisionOrder): Promise<Decided> => {
      const decided = await decideReview(caller, order);
      if (decided.isAwaited) delivery.deliverSoon(order.review_id);
      return decided;
    },
  };
}

export type ReviewService = ReturnType<typeof createReviewService>;
