/**
 * Opens a review, in the transaction that makes it necessary. An escalation, a skill, a budget or a step has one open
 * review; a second request returns the same one.
 */

import type { BudgetRefusal } from '@capstan/core/contracts/money';
import type { ReviewKind, ReviewPayload } from '@capstan/core/contracts/review';
import { AppError } from '@capstan/core/errors/app-error';
import { mayAskAgain } from '@capstan/core/ladder/levels';
import type { Db } from '../../db/connect.ts';
import { rowOfScoped } from '../../db/money/scoped-budget.ts';
import {
  findOpenReview,
  insertReview,
  type ReviewRow,
  type ReviewSubject,
  readReview,
  reopenReview as reopenRow,
} from '../../db/review/review.ts';
import { newId } from '../../parts/ids.ts';

export interface ReviewOpening {
  readonly project_id: string;
  readonly kind: ReviewKind;
  /** One sentence for a person. */
  readonly reason: string;
  readonly run_id?: string | undefined;
  readonly step_id?: string | undefined;
  readonly item?: number | undefined;
  readonly escalation_id?: string | undefined;
  readonly skill_id?: string | undefined;
  /** The exhausted scope, for a review of kind budget; a ladder's own limit is none. */
  readonly subject?: string | undefined;
  readonly payload: ReviewPayload;
  readonly due_in_ms: number;
}

export interface OpenedReview {
  readonly review_id: string;
  /** RFC 3339 */
  readonly due_at: string;
}

function toOpened({ review_id, due_at }: ReviewRow): OpenedReview {
  return { review_id, due_at: due_at.toISOString() };
}

function subjectOf(opening: ReviewOpening): ReviewSubject | undefined {
  const { project_id, escalation_id, skill_id, subject, kind, run_id, step_id, item = 0 } = opening;
  if (escalation_id !== undefined) return { escalation_id };
  if (skill_id !== undefined) return { skill_id };
  if (subject !== undefined) return { project_id, subject };
  const isStep = kind === 'step' && run_id !== undefined && step_id !== undefined;
  return isStep ? { run_id, step_id, item } : undefined;
}

async function findOpen(db: Db, opening: ReviewOpening): Promise<ReviewRow | undefined> {
  const about = subjectOf(opening);
  return about === undefined ? undefined : findOpenReview(db, about);
}

/** @param trx in which the state changes that the review is about */
export async function openReview(trx: Db, opening: ReviewOpening): Promise<OpenedReview> {
  const { run_id = null, step_id = null, item = null, escalation_id = null, skill_id = null } = opening;
  const review_id = newId('review');
  const subject = opening.subject ?? null;
  const row = { ...opening, review_id, run_id, step_id, item, escalation_id, skill_id, subject };
  const isNew = await insertReview(trx, row);
  const opened = isNew ? await readReview(trx, review_id) : await findOpen(trx, opening);
  if (opened === undefined)
    throw new AppError('unavailable', 'the open review has ended in the meantime; retry');
  return toOpened(opened);
}

interface ReviewReopening {
  readonly review_id: string;
  /** The round of the decision that did not help. */
  readonly round: number;
  readonly reason: string;
  readonly subject?: string | undefined;
  readonly payload: ReviewPayload;
  readonly due_in_ms: number;
}

/**
 * Opens the review again after a decision that did not help. Repeated, it returns the same.
 * @returns null when the limit of rounds is reached, or the review has ended otherwise
 */
export async function reopenReview(trx: Db, reopening: ReviewReopening): Promise<OpenedReview | null> {
  const { review_id, round } = reopening;
  if (!mayAskAgain(round)) return null;
  await reopenRow(trx, reopening);
  const row = await readReview(trx, review_id);
  return row !== undefined && row.round === round + 1 ? toOpened(row) : null;
}

/** The name of the budget that refused a call, which is the subject of reviews about it. @param of the call */
export function budgetScopeOf(
  { scope, run_id, budget, period }: BudgetRefusal,
  of: { readonly project_id: string; readonly run_id: string },
): string {
  if (budget !== undefined && period !== undefined) {
    return rowOfScoped(of.project_id, { scope: budget, period });
  }
  if (scope === 'project') return `project:${of.project_id}`;
  return scope === 'global' ? 'global' : `run:${run_id ?? of.run_id}`;
}
