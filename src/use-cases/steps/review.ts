/** A step that opens a review: the person's answer is its output. */

import type { Json } from '@capstan/core/contracts/primitives';
import type { ReviewDecision, ReviewPayload } from '@capstan/core/contracts/review';
import { parseDuration } from '@capstan/core/duration';
import { endOfQuestion } from '@capstan/core/ladder/human-review';
import { reviewTimeoutOf } from '@capstan/core/run/step-rules';
import type { StepExecution, WaitingStep } from '@capstan/core/workflow-payloads';
import type { Ctx } from '../../context.ts';
import type { Db } from '../../db/connect.ts';
import { findLastReview, type ReviewRow } from '../../db/review/review.ts';
import { endStep, type StoredStep } from '../../db/step/step.ts';
import { answerStep, keepWaiting, logStep } from '../../db/step/step-progress.ts';
import { expireOverdueReviews } from '../reviews/delivery.ts';
import { openReview } from '../reviews/opening.ts';
import { resolveInput, resolveTitle, type StepUnit } from '../run-data/evaluation.ts';
import { failStep, readEnd } from './step-end.ts';

type Execution = StepExecution | WaitingStep;

export async function executeReview(
  { db, results }: Pick<Ctx, 'db' | 'results'>,
  unit: StepUnit,
  stored: StoredStep | undefined,
): Promise<Execution> {
  const { context, step, key } = unit;
  if (stored !== undefined) {
    const asked = await findAsked(db, unit);
    if (asked !== undefined) return follow(db, unit, asked);
  }
  const resolved = await resolveInput({ context, results }, step, key.item);
  if ('error' in resolved) return failStep(db, unit.key, resolved.error);
  const title = await resolveTitle({ context, results }, step, key.item);
  if ('error' in title) return failStep(db, unit.key, title.error);
  return ask(db, unit, { input: resolved.input, title: title.value });
}

function findAsked(db: Db, { key: { run_id, step_id, item } }: StepUnit): Promise<ReviewRow | undefined> {
  return findLastReview(db, { run_id, step_id, item });
}

function waitFor(review_id: string, due_at: Date): WaitingStep {
  return { kind: 'waiting', awaiting: 'review', until: due_at, ref: { review_id } };
}

interface TitledInput {
  readonly title: string;
  readonly input: Json;
}

async function ask(db: Db, unit: StepUnit, { title, input }: TitledInput): Promise<Execution> {
  const { context, step, key } = unit;
  const { schema } = step.definition.review ?? {};
  const payload: ReviewPayload = {
    input,
    optional: step.definition.optional ?? false,
    details: { title },
    ...(schema === undefined ? {} : { schema }),
  };
  const { run_id, step_id, item } = key;
  const waiting = await db.transaction(async (trx) => {
    const { review_id, due_at } = await openReview(trx, {
      project_id: context.project_id,
      kind: 'step',
      reason: title,
      run_id,
      step_id,
      item,
      payload,
      due_in_ms: parseDuration(reviewTimeoutOf(step.definition)),
    });
    const wait = {
      awaiting: 'review',
      until: due_at,
      for_ms: null,
      begins: true,
      data: { review_id },
    } as const;
    const held = await keepWaiting(trx, key, wait);
    return held === undefined ? null : waitFor(review_id, new Date(due_at));
  });
  return waiting ?? readEnd(db, key);
}

/** Expires an overdue review: the workflow's timer fires then, even while maintenance is away. */
async function follow(db: Db, unit: StepUnit, asked: ReviewRow): Promise<Execution> {
  const isOpen = asked.state === 'open' || asked.state === 'claimed';
  if (isOpen) await expireOverdueReviews(db, { limit: 1, review_id: asked.review_id });
  const review = isOpen ? ((await findAsked(db, unit)) ?? asked) : asked;
  switch (review.state) {
    case 'open':
    case 'claimed':
      return waitFor(review.review_id, review.due_at);
    case 'resolved':
      return take(db, unit, review);
    case 'expired':
      return endUnanswered(db, unit, review);
    case 'cancelled':
      return { kind: 'cancelled' };
  }
}

async function take(db: Db, { key }: StepUnit, { review_id, decision }: ReviewRow): Promise<Execution> {
  const taken = decision as ReviewDecision;
  const end = endOfQuestion(taken);
  const data = { review_id };
  await db.transaction(async (trx) => {
    await logStep(trx, key, { type: 'step.reviewed', data: { review_id, action: taken.action } });
    if (end.state === 'failed')
      await endStep(trx, key, { state: 'failed', error: { ...end.error, details: data } });
    else await answerStep(trx, key, { ...end, data });
  });
  return readEnd(db, key);
}

async function endUnanswered(db: Db, unit: StepUnit, { review_id }: ReviewRow): Promise<Execution> {
  const { definition } = unit.step;
  if (definition.review?.on_timeout === 'skip') {
    const data = { review_id, reason: 'nobody decided in time' };
    await answerStep(db, unit.key, { state: 'skipped', data });
    return readEnd(db, unit.key);
  }
  const message = `nobody answered review ${review_id} within ${reviewTimeoutOf(definition)}`;
  return failStep(db, unit.key, { code: 'step_timeout', message, details: { review_id } });
}
