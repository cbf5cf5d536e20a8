/** Why a review is not to be had: who was faster, and what they decided. */
import type { Json } from '../../contracts/primitives.ts';
import type { ReviewStanding } from '../../contracts/review.ts';
import type { ReviewRow } from '../../db/review/review.ts';
import { AppError } from '../../errors/app-error.ts';
import { toReview } from './review-view.ts';

function isEnded({ state }: ReviewRow): boolean {
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

/** Without what it is about. */
export function standingOf(row: ReviewRow): ReviewStanding {
  const { review_id, state, version, assignee, claim_expires_at, ...end } = toReview(row);
  const { decision, decided_by, decided_at } = end;
  return {
    review_id,
    state,
    version,
    ...(assignee === undefined ? {} : { assignee, claim_expires_at }),
    ...(decision === undefined ? {} : { decision }),
    ...(decided_by === undefined ? {} : { decided_by }),
    ...(decided_at === undefined ? {} : { decided_at }),
  };
}

/** @param version that the request was made for; null: for any */
export function toConflict(row: ReviewRow, version: number | null): AppError {
  return new AppError('state_conflict', `review ${row.review_id} ${describe(row, version)}`, {
    details: { review: standingOf(row) as unknown as Json },
  });
}

/** Whether `by` may decide what it read. @throws AppError `state_conflict` */
export function requireDecidable(row: ReviewRow, by: string, version: number): void {
  const isTaken = row.assignee !== null && row.assignee !== by;
  if (isEnded(row) || isTaken || row.version !== version) throw toConflict(row, version);
}
