/**
 * What a person decided about a ladder, or that nobody did in time. The decision is read from the review's row and is
 * one transition like any other: told twice, it is applied once. An input is executed by the next transition; advice is
 * one more entry of the list; the rest ends the ladder.
 */
import type { Failure } from '../../../contracts/primitives.ts';
import type { ReviewDecision } from '../../../contracts/review.ts';
import { humanLevel, labelOf, topLevel } from '../../../core/ladder/labels.ts';
import { startLadder } from '../../../core/ladder/machine.ts';
import { stopFailure } from '../../../core/ladder/stop-reason.ts';
import type { Db } from '../../../db/connect.ts';
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import { raiseEscalationLimit } from '../../../db/escalation/escalation-transition.ts';
import { type ReviewRow, readReview } from '../../../db/review/review.ts';
import { answerStep } from '../../../db/step/step-open.ts';
import { AppError } from '../../../errors/app-error.ts';
import { expireOverdueReviews } from '../../reviews/expire-reviews.ts';
import { decidedInput } from '../../reviews/review-input.ts';
import { requireEscalation } from './advance.ts';
import { type Advanced, readPlace } from './ladder-position.ts';
import { readStepTask, type TaskDependencies } from './step-task.ts';
import { type Progress, storeProgress } from './store-progress.ts';
import { readLadder, type StoredLadder, stepOf } from './stored-ladder.ts';

/** @throws AppError `not_found` for a review that is of no escalation */
export async function applyDecision(
  dependencies: TaskDependencies,
  { review_id }: { readonly review_id: string },
): Promise<Advanced> {
  const { db } = dependencies;
  const review = await readReview(db, review_id);
  if (review?.escalation_id == null)
    throw new AppError('not_found', `there is no review ${review_id} of an escalation`);
  const row = await requireEscalation(dependencies, review.escalation_id);
  if (row.state !== 'in_review' || row.review_id !== review_id) return readPlace(db, row);
  const progress = await decide(dependencies, row, await expireOverdue(db, review));
  if (progress !== null) await storeProgress(dependencies, row, progress);
  return readPlace(db, await requireEscalation(dependencies, row.escalation_id));
}

/** Whoever waits comes when it is overdue at the latest: then it is over, also while maintenance is away. */
async function expireOverdue(db: Db, review: ReviewRow): Promise<ReviewRow> {
  if (review.state !== 'open' && review.state !== 'claimed') return review;
  const { review_id } = review;
  const count = await expireOverdueReviews(db, { limit: 1, review_id });
  return count === 0 ? review : ((await readReview(db, review_id)) ?? review);
}

/** Null while it is open. */
async function decide(
  dependencies: TaskDependencies,
  row: EscalationRow,
  review: ReviewRow,
): Promise<Progress | null> {
  switch (review.state) {
    case 'open':
    case 'claimed':
      return null;
    case 'expired':
      return endWith(row, review, { state: 'failed', error: expiredFailure(row) });
    case 'cancelled':
      return endWith(row, review, { state: 'cancelled', error: stopFailure('cancelled', null) });
    case 'resolved':
      return follow(dependencies, row, review, review.decision as ReviewDecision);
  }
}

function expiredFailure({ error }: EscalationRow): Failure {
  return {
    code: 'ladder_exhausted',
    message: `${error?.message ?? stopFailure('exhausted', null).message}; nobody decided in time`,
  };
}

function follow(
  dependencies: TaskDependencies,
  row: EscalationRow,
  review: ReviewRow,
  decision: ReviewDecision,
): Progress | Promise<Progress> {
  const note = decision.note === undefined ? '' : `: ${decision.note}`;
  switch (decision.action) {
    case 'approve':
    case 'edit':
      return runInput(row, review, decidedInput(review.payload, decision) ?? null, decision.remember ?? true);
    case 'retry':
    case 'raise':
      return retry(dependencies, row, review, decision);
    case 'advise':
      return takeAdvice(row, review, decision);
    case 'output':
      return giveOutput(row, review, decision);
    case 'skip':
      return skip(row, review);
    case 'cancel': {
      const message = `a person cancelled the escalation${note}`;
      return endWith(row, review, { state: 'failed', error: { code: 'escalation_cancelled', message } });
    }
    case 'reject':
    case 'keep':
    case 'narrow':
    case 'merge':
    case 'retire': {
      const message = `a person rejected it in a review${note}`;
      return endWith(row, review, { state: 'failed', error: { code: 'review_rejected', message } });
    }
  }
}

function told({ review_id, decision }: ReviewRow, kind = 'decided') {
  return {
    kind,
    level: humanLevel,
    review_id,
    ...(decision === null ? {} : { action: decision.action }),
  };
}

function goOn(review: ReviewRow, next: StoredLadder): Progress {
  return {
    next,
    event: told(review),
    verdict: { kind: 'goes_on' },
  };
}

function runInput(
  row: EscalationRow,
  review: ReviewRow,
  input: Exclude<ReviewDecision['input'], undefined>,
  remember: boolean,
): Progress {
  const { review_id, round } = review;
  return goOn(review, { ...readLadder(row), decided: { review_id, round, input, remember } });
}

/** The step's last input once more; of a job, the level that was tried last. */
async function retry(
  dependencies: TaskDependencies,
  row: EscalationRow,
  review: ReviewRow,
  { budget_ceiling_usd }: ReviewDecision,
): Promise<Progress> {
  if (stepOf(row) !== null && budget_ceiling_usd === undefined) {
    const { current } = await readStepTask(dependencies, row);
    return runInput(row, review, current, false);
  }
  const progress = goOn(review, restart(row, Math.min(row.escalation_level, topLevel)));
  if (budget_ceiling_usd === undefined || row.max_usd === null) return progress;
  return { ...progress, also: (trx) => raiseEscalationLimit(trx, row.escalation_id, budget_ceiling_usd) };
}

function restart(row: EscalationRow, level: number, lists: Partial<StoredLadder> = {}): StoredLadder {
  const ladder = { ...readLadder(row), ...lists };
  const { rules, history, advice } = ladder;
  return { ...ladder, ...startLadder({ ...rules, history, advice, start_level: level }) };
}

function takeAdvice(
  row: EscalationRow,
  review: ReviewRow,
  { instructions = '', level = 1 }: ReviewDecision,
): Progress {
  const { history, advice } = readLadder(row);
  const given = {
    from_level: humanLevel,
    label: labelOf(humanLevel),
    instructions,
    suggested_executor_level: level,
    fingerprint: history.at(-1)?.fingerprint ?? '',
  };
  return goOn(review, restart(row, level, { advice: [...advice, given] }));
}

function endWith(
  row: EscalationRow,
  review: ReviewRow,
  { state, error }: { readonly state: 'failed' | 'cancelled'; readonly error: Failure },
): Progress {
  return {
    next: readLadder(row),
    event: told(review, review.state === 'resolved' ? 'decided' : review.state),
    verdict: { kind: 'ended', state, error },
  };
}

function giveOutput(row: EscalationRow, review: ReviewRow, { output = null }: ReviewDecision): Progress {
  const step = stepOf(row);
  const data = { escalation_id: row.escalation_id, review_id: review.review_id };
  return {
    next: readLadder(row),
    event: told(review),
    verdict: { kind: 'ended', state: 'succeeded', error: null, ...(step === null ? { result: output } : {}) },
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
    verdict: { kind: 'ended', state: 'succeeded', error: null },
    also: async (trx) => {
      if (step !== null) await answerStep(trx, step, { state: 'skipped', data });
    },
  };
}
