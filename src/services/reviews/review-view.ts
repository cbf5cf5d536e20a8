import type { Review, ReviewSummary } from '../../contracts/review.ts';
import { actionsOf } from '../../core/reviews/review-actions.ts';
import type { ReviewRow } from '../../db/review/review.ts';

function given<Value, Name extends string>(name: Name, value: Value | null): { [N in Name]?: Value } {
  return (value === null ? {} : { [name]: value }) as { [N in Name]?: Value };
}

function givenTime<Name extends string>(name: Name, time: Date | null): { [N in Name]?: string } {
  return given(name, time === null ? null : time.toISOString());
}

/** What the API shows of a review. */
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

/** And of one in a list. */
export function toReviewSummary(row: ReviewRow): ReviewSummary {
  const { input, proposals, history, advice, schema, ...payload } = row.payload;
  return { ...toReview(row), payload };
}
