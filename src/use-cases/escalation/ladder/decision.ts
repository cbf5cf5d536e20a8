/**
 * Applies a person's decision about a ladder, the expiry of its review, or a stop from outside. The decision is read from the review's row
 * and is one transition like any other: delivered twice, it is applied once. An input is executed by the next
 * transition; advice is appended to the list; any other decision ends the ladder.
 */

import type { Failure, Json } from '@capstan/core/contracts/primitives';
import type { ReviewDecision } from '@capstan/core/contracts/review';
import { AppError } from '@capstan/core/errors/app-error';
import { interruptLadder } from '@capstan/core/ladder/drive';
import {
  type DecisionOutcome,
  followDecision,
  stopFailure,
  undecidedFailure,
} from '@capstan/core/ladder/human-review';
import { humanLevel } from '@capstan/core/ladder/levels';
import { decidedInput } from '@capstan/core/review-actions';
import type { Advanced } from '@capstan/core/workflow-payloads';
import type { Ctx } from '../../../context.ts';
import type { Db } from '../../../db/connect.ts';
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import { raiseEscalationLimit } from '../../../db/escalation/escalation-transition.ts';
import { type ReviewRow, readReview } from '../../../db/review/review.ts';
import { answerStep } from '../../../db/step/step-progress.ts';
import { expireOverdueReviews } from '../../reviews/delivery.ts';
import { openReview } from '../../reviews/opening.ts';
import { learnFromDecision } from '../../skills/decided-repairs.ts';
import { readStepTask } from './escalated-task.ts';
import { type Progress, storeProgress } from './progress.ts';
import { readLadder, readPosition, requireEscalation, stepOf } from './stored-ladder.ts';

/** @throws AppError `not_found` for a review of another subject */
export async function applyDecision(
  ctx: Ctx,
  { review_id }: { readonly review_id: string },
): Promise<Advanced> {
  const { db } = ctx;
  const review = await readReview(db, review_id);
  if (review?.escalation_id == null)
    throw new AppError('not_found', `there is no review ${review_id} of an escalation`);
  const row = await requireEscalation(db, review.escalation_id);
  if (row.state !== 'in_review' || row.review_id !== review_id) return readPosition(db, row);
  const progress = await decide(ctx, row, await expireOverdue(db, review));
  if (progress !== null) await storeProgress(ctx, row, progress);
  return readPosition(db, await requireEscalation(db, row.escalation_id));
}

/** Expires an overdue review: the ladder's own timer fires then, even while maintenance is away. */
async function expireOverdue(db: Db, review: ReviewRow): Promise<ReviewRow> {
  if (review.state !== 'open' && review.state !== 'claimed') return review;
  const { review_id } = review;
  await expireOverdueReviews(db, { limit: 1, review_id });
  return (await readReview(db, review_id)) ?? review; // it may have ended a moment ago
}

/** Null while it is open. */
async function decide(ctx: Ctx, row: EscalationRow, review: ReviewRow): Promise<Progress | null> {
  switch (review.state) {
    case 'open':
    case 'claimed':
      return null;
    case 'expired':
      return endWith(row, review, { state: 'failed', error: undecidedFailure(row.error) });
    case 'cancelled':
      return endWith(row, review, { state: 'cancelled', error: stopFailure('cancelled', null) });
    case 'resolved':
      return follow(ctx, row, review);
  }
}

async function follow(ctx: Ctx, row: EscalationRow, review: ReviewRow): Promise<Progress> {
  const decision = review.decision as ReviewDecision;
  const { review_id, round, payload } = review;
  const ladder = readLadder(row);
  const outcome = await followDecision(ladder, decision, {
    review_id,
    round,
    input: decidedInput(payload, decision),
    level: row.escalation_level,
    readCurrent: stepOf(row) === null ? null : async () => (await readStepTask(ctx, row)).current,
  });
  switch (outcome.kind) {
    case 'goes_on':
      return goOn(row, review, outcome);
    case 'answered':
      return giveOutput(row, review, outcome.output);
    case 'skipped':
      return skip(row, review);
    case 'failed':
      return {
        ...endWith(row, review, { state: 'failed', error: outcome.error }),
        ...learnAgainst(row, review),
      };
  }
}

/** A rejection is evidence against every proposal. */
function learnAgainst({ job_type: capability }: EscalationRow, review: ReviewRow): Pick<Progress, 'also'> {
  const { action, remember = true } = review.decision as ReviewDecision;
  if (action !== 'reject' || !remember) return {};
  const applied = { review, capability, decided: { kind: 'rejected' } } as const;
  return { also: (trx) => learnFromDecision(trx, applied, openReview) };
}

function told({ review_id, decision }: ReviewRow, kind = 'decided') {
  return { kind, level: humanLevel, review_id, ...(decision === null ? {} : { action: decision.action }) };
}

function goOn(
  { escalation_id, max_usd }: EscalationRow,
  review: ReviewRow,
  { next, raiseUsd }: Extract<DecisionOutcome, { kind: 'goes_on' }>,
): Progress {
  const progress: Progress = { next, event: told(review), outcome: { kind: 'goes_on' } };
  const isOwnLimit = review.subject === null && max_usd !== null; // otherwise the decision has raised the budget
  if (raiseUsd === undefined || !isOwnLimit) return progress;
  return { ...progress, also: (trx) => raiseEscalationLimit(trx, escalation_id, raiseUsd) };
}

function endWith(
  row: EscalationRow,
  review: ReviewRow,
  { state, error }: { readonly state: 'failed' | 'cancelled'; readonly error: Failure },
): Progress {
  return {
    next: readLadder(row),
    event: told(review, review.state === 'resolved' ? 'decided' : review.state),
    outcome: { kind: 'ended', state, error },
  };
}

function giveOutput(row: EscalationRow, review: ReviewRow, output: Json): Progress {
  const step = stepOf(row);
  const data = { escalation_id: row.escalation_id, review_id: review.review_id };
  return {
    next: readLadder(row),
    event: told(review),
    outcome: { kind: 'ended', state: 'succeeded', error: null, ...(step === null ? { result: output } : {}) },
    ...(step === null
      ? {}
      : {
          also: async (trx) => {
            await answerStep(trx, step, { state: 'succeeded', output, data });
          },
        }),
  };
}

function skip(row: EscalationRow, review: ReviewRow): Progress {
  const step = stepOf(row);
  const data = { escalation_id: row.escalation_id, review_id: review.review_id };
  return {
    next: readLadder(row),
    event: told(review),
    outcome: { kind: 'ended', state: 'succeeded', error: null },
    also: async (trx) => {
      if (step !== null) await answerStep(trx, step, { state: 'skipped', data });
    },
  };
}

// A ladder ends from outside: its time is over, or its result is no longer wanted.

export interface StopRequest {
  readonly escalation_id: string;
  /** The transition that the workflow expects; at another one the current position is returned. */
  readonly transition: number;
  readonly event: { readonly type: 'timed_out' } | { readonly type: 'cancel_requested' };
}

/** @returns null when the ladder continues: while its review is open, the time of the review applies */
function endOfStop(row: EscalationRow, { type }: StopRequest['event']): Progress | null {
  const ladder = readLadder(row);
  const event = { kind: type, level: row.escalation_level };
  if (row.state === 'running') return { ...interruptLadder(ladder, type), event };
  if (type === 'timed_out') return null;
  const error = ladder.history.at(-1)?.error ?? null;
  const outcome = { kind: 'stopped', reason: 'cancelled', error } as const;
  return { next: { ...ladder, decided: null }, event, outcome };
}

/**
 * Ends a ladder from outside: its time is over, which opens a review, or its result is no longer wanted. At another
 * transition it changes nothing and returns the current position. @throws AppError `not_found`
 */
export async function stopLadder(ctx: Ctx, request: StopRequest): Promise<Advanced> {
  const { db } = ctx;
  const row = await requireEscalation(db, request.escalation_id);
  const isOpen = row.state === 'running' || row.state === 'in_review';
  const progress = isOpen && row.transition === request.transition ? endOfStop(row, request.event) : null;
  if (progress === null) return readPosition(db, row);
  await storeProgress(ctx, row, progress);
  return readPosition(db, await requireEscalation(db, request.escalation_id));
}
