/**
 * Shows a review as the API does: the whole review, its line in a list, and the conflict that names the earlier
 * decision.
 */

import type { Json } from '@capstan/core/contracts/primitives';
import {
  Review,
  type ReviewPayload,
  type ReviewQuery,
  ReviewStanding,
  type ReviewSummary,
} from '@capstan/core/contracts/review';
import { toWire } from '@capstan/core/contracts/to-wire';
import { AppError } from '@capstan/core/errors/app-error';
import { actionsOf } from '@capstan/core/review-actions';
import type { ReviewRow } from '../../db/review/review.ts';
import type { ListedReview } from '../../db/review/review-list.ts';

/** The field, unless the value is null. */
export function given<Value, Name extends string>(name: Name, value: Value | null): { [N in Name]?: Value } {
  return (value === null ? {} : { [name]: value }) as { [N in Name]?: Value };
}

/** Shows the whole review. */
export function toReview(row: ReviewRow): Review {
  return toWire(Review, { ...row, item: row.item === 0 ? null : row.item, actions: actionsOf(row) });
}

/** Of a field in a list, as JSON. */
const longestListed = 16_384;

function smallOf(fields: Pick<ReviewPayload, 'input' | 'proposals' | 'schema'>): Partial<typeof fields> {
  const small = Object.entries(fields).filter(
    ([, value]) => value !== undefined && JSON.stringify(value).length <= longestListed,
  );
  return Object.fromEntries(small);
}

/** Shows a review in a list. @param shown `full`: with the fields that a decision needs, unless they are long */
export function toReviewSummary(row: ListedReview, shown: ReviewQuery['payload']): ReviewSummary {
  const { input, proposals, history, advice, schema, ...payload } = row.payload;
  const more = shown === 'full' ? smallOf({ input, proposals, schema }) : {};
  return { ...toReview(row), ...given('pipeline', row.pipeline), payload: { ...payload, ...more } };
}

/** A review that has ended cannot be decided. */
export function isEnded({ state }: ReviewRow): boolean {
  return state !== 'open' && state !== 'claimed';
}

function describe(row: ReviewRow, version: number | null): string {
  const at = row.decided_at?.toISOString();
  switch (row.state) {
    case 'resolved':
      return `was decided by ${row.decided_by} at ${at}: ${row.decision?.action}`;
    case 'expired':
      return `expired at ${at}`;
    case 'cancelled':
      return `was cancelled at ${at}, because what it was about has ended`;
    case 'claimed':
    case 'open':
      if (version !== null && version !== row.version) {
        return `is at version ${row.version}; the request was made for version ${version}`;
      }
      return row.assignee === null
        ? 'is claimed by nobody'
        : `is claimed by ${row.assignee} until ${row.claim_expires_at?.toISOString()}`;
  }
}

/** Shows the state of the review, without its subject. */
export function standingOf(row: ReviewRow): ReviewStanding {
  return toWire(ReviewStanding, row);
}

/** @param version in the request; null: any */
export function toConflict(row: ReviewRow, version: number | null): AppError {
  return new AppError('state_conflict', `review ${row.review_id} ${describe(row, version)}`, {
    details: { review: standingOf(row) as unknown as Json },
  });
}
