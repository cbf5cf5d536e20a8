/**
 * Writes the result of one transition of a ladder, by one transaction on top of the state that it started from: the
 * lists, the uses of skills, the learnt skills, the review, the step's state and a line in the run's log. A second
 * writer of the same transition writes nothing, so nothing happens twice.
 *
 * It counts the transitions; a ladder's work is part of the span of its step, which ends with it.
 */

import type { EscalationState } from '@capstan/core/contracts/escalation';
import type { Failure, Json, JsonObject } from '@capstan/core/contracts/primitives';
import { capabilityOf } from '@capstan/core/definition/step-settings';
import type { LadderTransition } from '@capstan/core/ladder/drive';
import {
  type AskedReview,
  followStop,
  mayAsk,
  type StopConsequence,
  type StoppedLadder,
} from '@capstan/core/ladder/human-review';
import { toNanoUsd } from '@capstan/core/money/nano-usd';
import { madeAtMs } from '@capstan/core/telemetry/trace-context';
import type { Ctx } from '../../../context.ts';
import type { Db } from '../../../db/connect.ts';
import { type EscalationRow, storeTransition } from '../../../db/escalation/escalation.ts';
import { lockTransition } from '../../../db/escalation/escalation-transition.ts';
import { hasRoomFor } from '../../../db/money/budget.ts';
import { readReview } from '../../../db/review/review.ts';
import { cancelEscalationReviews } from '../../../db/review/review-delivery.ts';
import type { NewSkillUse } from '../../../db/skill-use.ts';
import { endStep, readStep } from '../../../db/step/step.ts';
import { keepStepOpen, logStep } from '../../../db/step/step-progress.ts';
import type { CurrentSpec } from '../../../parts/fleet/specs.ts';
import { type OpenedReview, openReview, reopenReview } from '../../reviews/opening.ts';
import { stepOf as compiledStepOf } from '../../run-data/evaluation.ts';
import { learnFromDecision } from '../../skills/decided-repairs.ts';
import { recordSkillUses } from '../../skills/use.ts';
import { endOf } from '../../steps/step-end.ts';
import { endStepSpan, scopeOfStep } from '../../telemetry/run-spans.ts';
import { type ReviewQuestion, writeQuestion } from './escalated-task.ts';
import { activeSkillsOf, learnFromSuccess, skillUsesOf } from './learning.ts';
import { modelSpecOf, readLadder, stepOf, storeLadder } from './stored-ladder.ts';

/** The result of one transition, as it was stored. */
interface StoredTransition {
  readonly level: number;
  readonly state: string;
  readonly uses: readonly Pick<NewSkillUse, 'outcome'>[];
}

/** Works in the span of the ladder's step; the ladder of a job without a step has none. */
export async function withinStep<Result>(
  { contexts, telemetry }: Ctx,
  row: EscalationRow,
  work: () => Promise<Result>,
): Promise<Result> {
  const step = stepOf(row);
  if (step === null) return work();
  const scope = scopeOfStep(telemetry, await contexts.open(step.run_id), step);
  return telemetry.tracing.within(scope, work);
}

async function tellTransition(
  { db, contexts, telemetry }: Ctx,
  row: EscalationRow,
  { level, state, uses }: StoredTransition,
): Promise<void> {
  const { metrics, tracing } = telemetry;
  metrics.add('escalations_total', { level: String(level), outcome: state });
  for (const { outcome } of uses) metrics.add('skill_uses_total', { outcome });
  const key = stepOf(row);
  if (!tracing.isOn || key === null || state === 'running' || state === 'in_review') return;
  const stored = await readStep(db, key);
  const end = stored === undefined ? null : endOf(stored);
  if (end === null) return; // its run continues
  const context = await contexts.open(key.run_id);
  const span = {
    kind: 'call',
    capability: capabilityOf(compiledStepOf(context, key.step_id).definition),
    startMs: stored?.started_at?.getTime() ?? madeAtMs(row.escalation_id),
    state: end.kind,
    error: 'error' in end ? end.error.code : null,
  };
  endStepSpan(telemetry, { context, key }, span);
}

/** A transition, with the facts behind it. */
export interface Progress extends LadderTransition {
  /** The job's signals; default: the row's. */
  readonly signals?: readonly string[];
  readonly spec?: CurrentSpec | null;
  /** Runs in the same transaction. */
  readonly also?: (trx: Db) => Promise<void>;
}

/** The row of the escalation after the transition. */
interface StoredOutcome {
  readonly state: EscalationState;
  readonly error: Failure | null;
  readonly result?: Json | undefined;
  readonly review_id?: string | undefined;
  readonly skill_id?: string | undefined;
}

/**
 * @returns false when another transition was stored, or it has ended; nothing was written @throws MoneyCame; nothing
 * was written
 */
export async function storeProgress(ctx: Ctx, row: EscalationRow, progress: Progress): Promise<boolean> {
  const { outcome, next } = progress;
  const { policy } = next;
  const asks = outcome.kind === 'stopped' && mayAsk({ reason: outcome.reason, policy });
  const question = asks ? await writeQuestion(ctx, row, next) : null;
  const stored = await ctx.db.transaction(async (trx) => {
    if (!(await lockTransition(trx, row.escalation_id, row.transition))) return null;
    await recordUses(trx, row, progress);
    await learnFromReview(trx, row, progress);
    const stored = await settleOutcome(trx, row, { progress, question });
    await storeTransition(trx, { ...changeOf(ctx, row, progress), ...stored });
    await tellRun(trx, row, { progress, stored });
    await progress.also?.(trx);
    return stored;
  });
  if (stored === null) return false;
  const level = Number(progress.event.level ?? row.escalation_level);
  const uses = usesOf(row, progress);
  // The transition is stored: failed telemetry changes nothing.
  await tellTransition(ctx, row, { level, state: stored.state, uses }).catch(() => undefined);
  return true;
}

function usesOf(row: EscalationRow, { execution, signals }: Progress) {
  if (execution === undefined) return [];
  return skillUsesOf(execution, { job_type: row.job_type, signals: signals ?? row.signals });
}

async function recordUses(trx: Db, row: EscalationRow, progress: Progress): Promise<void> {
  if (progress.execution === undefined) return;
  const { project_id, escalation_id, transition } = row;
  const uses = usesOf(row, progress);
  const occasion = { escalation_id, transition };
  await recordSkillUses(trx, { project_id, occasion, uses }, openReview);
}

/** Learns from the decision whose input was executed, before its review may be opened again. */
async function learnFromReview(trx: Db, row: EscalationRow, { execution }: Progress): Promise<void> {
  const { decided } = readLadder(row);
  if (decided === null || !decided.remember || execution === undefined) return;
  const { end } = execution;
  const isTold = end.kind === 'succeeded' || (end.kind === 'failed' && end.class === 'real');
  const review = isTold ? await readReview(trx, decided.review_id) : undefined;
  if (review === undefined) return;
  const told = { kind: end.kind === 'succeeded' ? end.kind : 'failed', input: decided.input } as const;
  await learnFromDecision(trx, { review, capability: row.job_type, decided: told }, openReview);
}

async function settleOutcome(
  trx: Db,
  row: EscalationRow,
  { progress, question }: { readonly progress: Progress; readonly question: ReviewQuestion | null },
): Promise<StoredOutcome> {
  const { outcome, execution } = progress;
  switch (outcome.kind) {
    case 'goes_on':
      return { state: 'running', error: null };
    case 'succeeded': {
      const skill_id = execution?.solved_by ?? (await learn(trx, row, progress)) ?? undefined;
      const result = execution?.end.kind === 'succeeded' ? execution.end.result : undefined;
      return { state: 'succeeded', error: null, result, skill_id };
    }
    case 'ended':
      return { state: outcome.state, error: outcome.error, result: outcome.result };
    case 'stopped':
      return stop(trx, row, {
        stopped: { ...outcome, policy: progress.next.policy, jobType: row.job_type },
        question,
      });
  }
}

function learn(trx: Db, row: EscalationRow, progress: Progress): Promise<string | null> {
  const { outcome, execution, signals = row.signals, spec = null } = progress;
  if (outcome.kind !== 'succeeded' || !outcome.teaches) return Promise.resolve(null);
  return learnFromSuccess(trx, { row, lesson: outcome.lesson, signals, input: execution?.input, spec });
}

interface Stop {
  readonly stopped: StoppedLadder;
  /** Null: it opens no review. */
  readonly question: ReviewQuestion | null;
}

async function stop(trx: Db, row: EscalationRow, { stopped, question }: Stop): Promise<StoredOutcome> {
  const asked = question === null ? null : await readAsked(trx, row);
  const consequence = followStop(stopped, asked);
  if (consequence.kind === 'end') {
    const { state, error } = consequence;
    if (state === 'cancelled') await cancelEscalationReviews(trx, row.escalation_id);
    return { state, error };
  }
  const { error } = consequence;
  const review = question === null ? null : await askPerson(trx, row, { consequence, question });
  if (review === null) return { state: 'failed', error };
  return { state: 'in_review', error: withReview(error, review), review_id: review.review_id };
}

async function readAsked(trx: Db, { review_id }: EscalationRow): Promise<AskedReview | null> {
  const review = review_id === null ? undefined : await readReview(trx, review_id);
  if (review === undefined) return null;
  const { kind, round, state } = review;
  return { kind, round, isResolved: state === 'resolved' };
}

function withReview(error: Failure, { review_id }: OpenedReview): Failure {
  return { ...error, details: { ...(error.details as JsonObject), review_id } };
}

/** Withdraws a review about money: the limit was raised meanwhile. */
export class MoneyCame extends Error {
  override readonly name = 'MoneyCame';
}

interface Asking {
  readonly consequence: Exclude<StopConsequence, { kind: 'end' }>;
  readonly question: ReviewQuestion;
}

/** @returns null when the review that was to be opened again has ended otherwise */
async function askPerson(
  trx: Db,
  row: EscalationRow,
  { consequence, question }: Asking,
): Promise<OpenedReview | null> {
  const { reason } = consequence;
  const { project_id, escalation_id, review_id } = row;
  const { shortage, ...shown } = question;
  const asked = { reason, subject: shortage?.subject, ...shown };
  const { kind } = consequence;
  const review =
    kind === 'ask'
      ? await openReview(trx, {
          project_id,
          escalation_id,
          kind: consequence.review,
          ...(stepOf(row) ?? {}),
          ...asked,
        })
      : review_id === null
        ? null
        : await reopenReview(trx, { review_id, round: consequence.round, ...asked });
  // Locks the review, then the budget, in the order that a raise uses.
  const { subject, minimum_usd } = shortage ?? {};
  const isOver = subject !== undefined && (await hasRoomFor(trx, subject, toNanoUsd(minimum_usd ?? 0)));
  if (isOver) throw new MoneyCame();
  return review;
}

function changeOf(ctx: Ctx, row: EscalationRow, { next, execution }: Progress) {
  const { escalation_id, transition } = row;
  const { history, command } = next;
  const level = command.type === 'execute' ? command.level : row.escalation_level;
  const made = execution === undefined ? row.model_spec : modelSpecOf(ctx, execution.level, execution.model);
  const hasGrown = history.length > row.escalation_history.length;
  const isKnownError = hasGrown && execution?.end.kind !== 'no_template';
  return {
    escalation_id,
    transition,
    ...storeLadder(next),
    escalation_level: level,
    leader_id: row.leader_id,
    model_spec: command.type === 'execute' ? modelSpecOf(ctx, command.level) : made,
    active_skills: execution === undefined ? row.active_skills : activeSkillsOf(execution),
    fingerprint: row.fingerprint ?? (isKnownError ? (history.at(-1)?.fingerprint ?? null) : null),
  };
}

/** The step's state and a line in the run's log. */
async function tellRun(
  trx: Db,
  row: EscalationRow,
  { progress, stored }: { readonly progress: Progress; readonly stored: StoredOutcome },
): Promise<void> {
  const { event, next } = progress;
  const { state, error, review_id, skill_id } = stored;
  const step = stepOf(row);
  if (step === null) return;
  const { escalation_id } = row;
  const isDecision = event.review_id !== undefined && event.kind !== 'executed';
  await logStep(trx, step, {
    type: isDecision ? 'step.reviewed' : 'step.escalated',
    data: { escalation_id, ...event, state, ...(skill_id === undefined ? {} : { skill_id }) },
  });
  if (state === 'running' && row.state === 'in_review') {
    await keepStepOpen(trx, step, { state: 'retrying', error: null, data: { escalation_id } });
  }
  if (state === 'in_review') {
    const data = { escalation_id, review_id: review_id ?? null };
    await keepStepOpen(trx, step, { state, error, data });
  }
  if (state === 'failed' && error !== null) {
    await endStep(trx, { ...step, revision: next.revision }, { state, error });
  }
}
