import { Review, ReviewDecision, ReviewList, ReviewQuery } from '@capstan/core/contracts/review';
import { AppError } from '@capstan/core/errors/app-error';
import { z } from 'zod';
import {
  claimReview,
  decideReview,
  listReviews,
  releaseReview,
  showReview,
} from '../../use-cases/reviews/reviews.ts';
import { json } from '../input.ts';
import { IdempotencyKey, IdPath, markReplayed, readIdempotency } from '../parameters.ts';
import { type Route, route } from '../route.ts';

const DecisionHeaders = z.object({
  'if-match': z
    .string()
    .regex(/^(?:W\/)?(?:"\d{1,9}"|\d{1,9})$/, { error: 'one ETag of a review is allowed, such as "3"' })
    .optional()
    .meta({
      description: 'The `ETag` of the review that you read, such as `"3"`. Without it, the answer is 428.',
    }),
  'idempotency-key': IdempotencyKey.meta({
    description: 'For 24 hours, a repeated request with this key gets the same answer.',
  }),
});

/** @throws AppError `precondition_required` */
function readVersion(ifMatch: string | undefined): number {
  if (ifMatch !== undefined) return Number(ifMatch.replace(/\D/g, ''));
  const message = 'send If-Match with the ETag of the review that was read, such as "3"';
  throw new AppError('precondition_required', message);
}

function answer(review: Review) {
  return { status: 200, headers: { ETag: `"${review.version}"` }, body: review } as const;
}

export const reviewRoutes: readonly Route[] = [
  route('GET /v1/reviews', {
    operation: 'list_reviews',
    tag: 'reviews',
    summary: 'List reviews, newest first or what is due first',
    description:
      'The payload omits input, proposals, history, advice and schema. Read a single review to see them, or ask for `payload=full`.',
    scope: 'run:read',
    query: ReviewQuery.strict(),
    responses: { 200: ReviewList },
    result: (ctx, { caller, query }) => listReviews(ctx, caller.project_id, query),
  }),
  route('GET /v1/reviews/{id}', {
    operation: 'get_review',
    tag: 'reviews',
    summary: 'Show a review; its ETag is the version to decide on',
    scope: 'run:read',
    params: IdPath,
    responses: { 200: Review },
    handle: async (ctx, { caller, params }) => answer(await showReview(ctx, caller.project_id, params.id)),
  }),
  route('POST /v1/reviews/{id}/claim', {
    operation: 'claim_review',
    tag: 'reviews',
    summary: 'Claim a review for 15 minutes, or extend the claim',
    description: 'Until then, only the claimant can decide it.',
    scope: 'review:decide',
    params: IdPath,
    responses: { 200: Review },
    errors: ['state_conflict'],
    handle: async (ctx, { caller, params }) => answer(await claimReview(ctx, caller, params.id)),
  }),
  route('POST /v1/reviews/{id}/release', {
    operation: 'release_review',
    tag: 'reviews',
    summary: 'Release the claim of a review',
    scope: 'review:decide',
    params: IdPath,
    responses: { 200: Review },
    errors: ['state_conflict'],
    handle: async (ctx, { caller, params }) => answer(await releaseReview(ctx, caller, params.id)),
  }),
  route('POST /v1/reviews/{id}/decision', {
    operation: 'decide_review',
    tag: 'reviews',
    summary: 'Decide a review',
    description:
      'The answer comes when the decision is stored; the step or escalation continues after that. An input is checked against the current schema of the capability. If the check fails, the review stays open.',
    scope: 'review:decide',
    params: IdPath,
    headers: DecisionHeaders,
    body: json(ReviewDecision, 'data'),
    responses: { 200: Review },
    errors: [
      'precondition_required',
      'state_conflict',
      'input_invalid',
      'idempotency_key_reuse',
      'idempotency_in_progress',
    ],
    handle: async (ctx, { caller, params, headers, body, bytes }) => {
      const { review, isReplayed } = await decideReview(ctx, caller, {
        review_id: params.id,
        version: readVersion(headers['if-match']),
        decision: body,
        idempotency: readIdempotency(headers, bytes),
      });
      const answered = answer(review);
      return { ...answered, headers: { ...answered.headers, ...markReplayed(isReplayed) } };
    },
  }),
];
