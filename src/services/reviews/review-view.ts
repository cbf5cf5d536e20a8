/**
 * Shows a review as the API does: the whole review, its line in a list, and the conflict that names the earlier
 * decision.
 */

import type { Json } from '../../contracts/primitives.ts';
import type { Review, ReviewStanding, ReviewSummary } from '../../contracts/review.ts';
import { actionsOf } from '../../core/review-actions.ts';
import type { ReviewRow } from '../../db/review/review.ts';
import type { ListedReview } from '../../db/review/review-list.ts';
import { AppError } from '../../errors/app-error.ts';

/** The field, unless the value is null. */
export function given<Value, Name extends string>(name: Name, value: Value | null): { [N in Name]?: Value } {
  return (value === null ? {} : { [name]: value }) as { [N in Name]?: Value };
}

function givenTime<Name extends string>(name: Name, time: Date | null): { [N in Name]?: string } {
  return given(name, time === null ? null : time.toISOString());
}

/** Shows the whole review. */
export function toReview(row: ReviewRow): Review {
  return {
    review_id: row.review_id,
    kind: row.kind,
    reason: row.reason,
    state: row.state,
    ...given('run_id', row.run_id),
    ...given('step_id', row.step_id),
    ...given('escalation_id', row.escalation_id),
    ...given('skill_id', row.skill_id),
    ...given('assignee', row.assignee),
    ...givenTime('claim_expires_at', row.claim_expires_at),
    due_at: row.due_at.toISOString(),
    version: row.version,
    round: row.round,
    payload: row.payload,
    actions: [...actionsOf(row)],
    ...given('decision', row.decision),
    ...given('decided_by', row.decided_by),
    ...givenTime('decided_at', row.decided_at),
    ...givenTime('delivered_at', row.delivered_at),
    created_at: row.created_at.toISOString(),
  };
}

/** Shows a review in a list. */
export function toReviewSummary(row: ListedReview): ReviewSummary {
  const { input, proposals, history, advice, schema, ...payload } = row.payload;
  return { ...toReview(row), ...given('pipeline', row.pipeline), payload };
}

/** A review that has ended cannot be decided. */
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

/** Shows the state of the review, without its subject. */
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

/** @param version in the request; null: any */
export function toConflict(row: ReviewRow, version: number | null): AppError {
  return new AppError('state_conflict', `review ${row.review_id} ${describe(row, version)}`, {
    details: { review: standingOf(row) as unknown as Json },
  });
}

/** Requires that `by` may decide the version that it read. @throws AppError `state_conflict` */
export function requireDecidable(row: ReviewRow, by: string, version: number): void {
  const isTaken = row.assignee !== null && row.assignee !== by;
  if (isEnded(row) || isTaken || row.version !== version) throw toConflict(row, version);
}
