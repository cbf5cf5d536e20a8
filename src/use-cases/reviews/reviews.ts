/**
 * Reviews as people see them: list, show, claim, release, decide.
 *
 * The row accepts one of two concurrent decisions; the other gets a conflict that names the winner. The response is
 * sent when the decision is stored; the waiting workflow is notified afterwards, even if Temporal is away now.
 */

import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { Review, ReviewDecision, ReviewQuery, ReviewSummary } from '@capstan/core/contracts/review';
import { AppError } from '@capstan/core/errors/app-error';
import { actionsOf } from '@capstan/core/review-actions';
import type { Ctx } from '../../context.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import {
  claimReview as claimRow,
  decideReview as decideRow,
  findReview,
  type ReviewRow,
  releaseReview as releaseRow,
} from '../../db/review/review.ts';
import { listReviews as listReviewRows } from '../../db/review/review-list.ts';
import { lockSkill } from '../../db/skill.ts';
import { type DeliveryCtx, deliverSoon } from '../../parts/delivery/deliveries.ts';
import type { Caller } from '../access/caller.ts';
import { decodeCursor, toPage } from '../cursor.ts';
import {
  findKept,
  type Idempotency,
  keepAnswer,
  type OnceRequest,
  refuseInProgress,
} from '../idempotency.ts';
import { endedReviews } from './delivery.ts';
import { checkDecision, type InputCtx } from './input.ts';
import { isEnded, toConflict, toReview, toReviewSummary } from './review-view.ts';
import { applyBudgetDecision, applySkillDecision, refuseDecision } from './subject-decisions.ts';

export interface DecisionOrder {
  readonly review_id: string;
  /** The version that was read. */
  readonly version: number;
  readonly decision: ReviewDecision;
  readonly idempotency: Idempotency | null;
}

/** @throws AppError `not_found` */
async function requireReview(db: Db, projectId: string, reviewId: string): Promise<ReviewRow> {
  const row = await findReview(db, projectId, reviewId);
  if (row === undefined) throw new AppError('not_found', `there is no review ${reviewId}`);
  return row;
}

/**
 * Requires that `by` may decide the version that it read; `isFree` of the table decides again when it is stored.
 * @throws AppError `state_conflict`
 */
function requireDecidable(row: ReviewRow, by: string, version: number): void {
  const isTaken = row.assignee !== null && row.assignee !== by;
  if (isEnded(row) || isTaken || row.version !== version) throw toConflict(row, version);
}

/** Completes the decision with the chosen proposal. @throws AppError `request_invalid` */
function settleDecision(row: ReviewRow, decision: ReviewDecision): ReviewDecision {
  const actions = actionsOf(row);
  if (!actions.includes(decision.action)) {
    const message = `this review does not take ${decision.action}; possible are ${actions.join(', ')}`;
    throw refuseDecision('/action', message);
  }
  if (decision.action === 'edit') {
    const field = row.kind === 'skill' ? 'skill' : 'input';
    if (decision[field] === undefined) throw refuseDecision(`/${field}`, `to edit this needs ${field}`);
  }
  if (decision.action !== 'approve') return decision;
  const count = row.payload.proposals?.length ?? 0;
  const proposal = decision.proposal ?? (count === 1 ? 0 : undefined);
  if (proposal === undefined || proposal >= count) {
    throw refuseDecision('/proposal', `say which proposal to approve, from 0 to ${count - 1}`);
  }
  return { ...decision, proposal };
}

function auditDecision(
  trx: Db,
  row: ReviewRow,
  { actor, decision }: { readonly actor: string; readonly decision: ReviewDecision },
): Promise<void> {
  return insertAudit(trx, {
    project_id: row.project_id,
    actor,
    action: 'review.decided',
    subject: row.review_id,
    data: {
      kind: row.kind,
      round: row.round,
      version: row.version,
      ...(row.run_id === null ? {} : { run_id: row.run_id, step_id: row.step_id }),
      ...(row.escalation_id === null ? {} : { escalation_id: row.escalation_id }),
      ...(row.skill_id === null ? {} : { skill_id: row.skill_id }),
      decision: decision as unknown as JsonObject,
    },
  });
}

export interface Decided {
  readonly review: Review;
  /** The same request was answered before. */
  readonly isReplayed: boolean;
  /** Whether a workflow waits for it. */
  readonly isAwaited: boolean;
}

async function storeDecision(ctx: InputCtx, caller: Caller, order: DecisionOrder): Promise<Decided> {
  const { db } = ctx;
  const { project_id } = caller;
  const known = await replay(db, project_id, order);
  if (known !== null) return known;
  try {
    const row = await requireReview(db, project_id, order.review_id);
    requireDecidable(row, caller.key_id, order.version);
    const decision = settleDecision(row, order.decision);
    await checkDecision(ctx, row, decision);
    const settled = { ...order, decision };
    return await db.transaction((trx) => store(trx, caller, { order: settled, skill_id: row.skill_id }));
  } catch (error) {
    // The same request was made twice in parallel: both get its answer.
    const same = error instanceof AppError && error.status === 409 && (await replay(db, project_id, order));
    if (same) return same;
    throw error;
  }
}

function keyedOf(project_id: string, { review_id, idempotency }: DecisionOrder): OnceRequest {
  return { project_id, request: `POST /v1/reviews/${review_id}/decision`, idempotency };
}

async function replay(db: Db, projectId: string, order: DecisionOrder): Promise<Decided | null> {
  const review = await findKept<Review>(db, keyedOf(projectId, order));
  return review === null ? null : { review, isReplayed: true, isAwaited: false };
}

async function store(
  trx: Db,
  caller: Caller,
  { order, skill_id }: { readonly order: DecisionOrder; readonly skill_id: string | null },
): Promise<Decided> {
  const { project_id, key_id } = caller;
  const { review_id, version, decision } = order;
  if (skill_id !== null) await lockSkill(trx, project_id, skill_id);
  const row = await decideRow(trx, { project_id, review_id, by: key_id, version, decision });
  if (row === undefined) throw toConflict(await requireReview(trx, project_id, review_id), version);
  if (row.kind === 'skill') await applySkillDecision(trx, row, caller);
  if (row.subject !== null) await applyBudgetDecision(trx, row, caller);
  await auditDecision(trx, row, { actor: key_id, decision });
  const review = toReview(row);
  const isKept = await keepAnswer(trx, keyedOf(project_id, order), { status: 200, answer: review });
  if (!isKept) throw refuseInProgress();
  return { review, isReplayed: false, isAwaited: row.delivered_at === null };
}

/** A claim that is not prolonged expires after this time. */
const leaseMs = 900_000;

export async function listReviews(
  { db }: Pick<Ctx, 'db'>,
  projectId: string,
  { cursor, limit, payload, ...filter }: ReviewQuery,
): Promise<{ items: ReviewSummary[]; next_cursor: string | null }> {
  const after = cursor === undefined ? undefined : decodeCursor(cursor);
  const rows = await listReviewRows(db, projectId, { ...filter, after, limit: limit + 1 });
  return toPage(rows, limit, {
    key: ({ review_id }) => review_id,
    item: (row) => toReviewSummary(row, payload),
  });
}

/** @throws AppError `not_found` */
export async function showReview(
  { db }: Pick<Ctx, 'db'>,
  projectId: string,
  reviewId: string,
): Promise<Review> {
  return toReview(await requireReview(db, projectId, reviewId));
}

/**
 * Claims the review for 15 min; repeated by the same key, for another 15.
 * @throws AppError `not_found`, `state_conflict`
 */
export async function claimReview(
  { db }: Pick<Ctx, 'db'>,
  { project_id, key_id: by }: Caller,
  review_id: string,
): Promise<Review> {
  const claimed = await claimRow(db, { project_id, review_id, by, lease_ms: leaseMs });
  if (claimed !== undefined) return toReview(claimed);
  throw toConflict(await requireReview(db, project_id, review_id), null);
}

/** @throws AppError `not_found`, `state_conflict` when the key does not hold the claim */
export async function releaseReview(
  { db }: Pick<Ctx, 'db'>,
  { project_id, key_id: by }: Caller,
  review_id: string,
): Promise<Review> {
  const released = await releaseRow(db, { project_id, review_id, by });
  if (released !== undefined) return toReview(released);
  throw toConflict(await requireReview(db, project_id, review_id), null);
}

/**
 * @throws AppError `not_found`, `state_conflict`, `request_invalid` for an action that the review does not offer,
 * `input_invalid`; the review does not change
 */
export async function decideReview(
  ctx: InputCtx & DeliveryCtx,
  caller: Caller,
  order: DecisionOrder,
): Promise<Decided> {
  const decided = await storeDecision(ctx, caller, order);
  if (decided.isAwaited) void deliverSoon(ctx, endedReviews, { review_id: order.review_id });
  return decided;
}
