/**
 * Writes what one transition made of a ladder, by one transaction on top of the state that it was worked out from: the
 * lists, the uses of skills, the skill that was learnt, the question to a person, the step's state and a line in the
 * run's log. Whoever comes second writes nothing, so nothing of it happens twice.
 */
import type { EscalationState } from '../../../contracts/escalation.ts';
import type { Failure, Json, JsonObject } from '../../../contracts/primitives.ts';
import { explainStop, reviewKindOf, stopFailure } from '../../../core/ladder/stop-reason.ts';
import type { Lesson, StopReason } from '../../../core/ladder/types.ts';
import type { Db } from '../../../db/connect.ts';
import { type EscalationRow, storeTransition } from '../../../db/escalation/escalation.ts';
import { lockTransition } from '../../../db/escalation/escalation-transition.ts';
import { readReview } from '../../../db/review/review.ts';
import { cancelEscalationReviews } from '../../../db/review/review-delivery.ts';
import { endStep } from '../../../db/step/step.ts';
import { holdStep, logStep } from '../../../db/step/step-open.ts';
import { type OpenedReview, openReview, reopenReview } from '../../reviews/open-review.ts';
import { recordSkillUses } from '../../skills/skill-uses.ts';
import { activeSkillsOf, type Execution, skillUsesOf } from '../levels/execution.ts';
import type { PresentSpec } from '../levels/present-spec.ts';
import { learnFrom } from './learnt-skill.ts';
import { type ReviewQuestion, writeQuestion } from './review-question.ts';
import type { TaskDependencies } from './step-task.ts';
import {
  modelSpecOf,
  readLadder,
  type StoredLadder,
  stepOf,
  toWireAdvice,
  toWireAttempt,
} from './stored-ladder.ts';

export type Verdict =
  | { readonly kind: 'goes_on' }
  /** `teaches`: it may become a skill. */
  | { readonly kind: 'succeeded'; readonly lesson: Lesson | null; readonly teaches: boolean }
  | { readonly kind: 'stopped'; readonly reason: StopReason; readonly error: string | null }
  /** By a person. */
  | {
      readonly kind: 'ended';
      readonly state: 'succeeded' | 'failed' | 'cancelled';
      readonly error: Failure | null;
      readonly result?: Json;
    };

export interface Progress {
  readonly next: StoredLadder;
  /** What the transition did, for the run's log. */
  readonly event: JsonObject;
  readonly verdict: Verdict;
  readonly execution?: Execution;
  readonly signals?: readonly string[];
  readonly spec?: PresentSpec | null;
  /** In the same transaction. */
  readonly also?: (trx: Db) => Promise<void>;
}

/** What becomes of a ladder by its machine's state. */
export function verdictOf({ command }: StoredLadder, execution?: Execution): Verdict {
  switch (command.type) {
    case 'execute':
    case 'advise':
      return { kind: 'goes_on' };
    case 'succeed': {
      const { lesson } = command;
      return { kind: 'succeeded', lesson, teaches: lesson !== null && execution?.solved_by === null };
    }
    case 'stop':
      return { kind: 'stopped', reason: command.reason, error: command.error };
  }
}

interface Ending {
  readonly state: EscalationState;
  readonly error: Failure | null;
  readonly result?: Json | undefined;
  readonly review_id?: string | undefined;
  readonly skill_id?: string | undefined;
}

/** @returns false when another transition was stored, or it has ended; nothing was written */
export async function storeProgress(
  dependencies: TaskDependencies,
  row: EscalationRow,
  progress: Progress,
): Promise<boolean> {
  const { verdict, next } = progress;
  const asks = verdict.kind === 'stopped' && verdict.reason !== 'cancelled' && waitsForPerson(next);
  const question = asks ? await writeQuestion(dependencies, row, next) : null;
  return dependencies.db.transaction(async (trx) => {
    if (!(await lockTransition(trx, row.escalation_id, row.transition))) return false;
    await recordUses(trx, row, progress);
    const ending = await end(trx, row, { progress, question });
    await storeTransition(trx, { ...changeOf(row, progress), ...ending });
    await tellRun(trx, row, progress, ending);
    await progress.also?.(trx);
    return true;
  });
}

function waitsForPerson({ policy }: StoredLadder): boolean {
  return policy?.on_exhausted !== 'fail';
}

async function recordUses(trx: Db, row: EscalationRow, { execution, signals }: Progress): Promise<void> {
  if (execution === undefined) return;
  const { project_id, job_type, escalation_id, transition } = row;
  const uses = skillUsesOf(execution, { job_type, signals: signals ?? row.signals });
  await recordSkillUses(trx, { project_id, occasion: { escalation_id, transition }, uses });
}

async function end(
  trx: Db,
  row: EscalationRow,
  { progress, question }: { readonly progress: Progress; readonly question: ReviewQuestion | null },
): Promise<Ending> {
  const { verdict, execution } = progress;
  switch (verdict.kind) {
    case 'goes_on':
      return { state: 'running', error: null };
    case 'succeeded': {
      const skill_id = execution?.solved_by ?? (await learn(trx, row, progress)) ?? undefined;
      const result = execution?.end.kind === 'succeeded' ? execution.end.result : undefined;
      return { state: 'succeeded', error: null, result, skill_id };
    }
    case 'ended':
      return { state: verdict.state, error: verdict.error, result: verdict.result };
    case 'stopped':
      return stop(trx, row, verdict, question);
  }
}

function learn(trx: Db, row: EscalationRow, progress: Progress): Promise<string | null> {
  const { verdict, execution, signals = row.signals, spec = null } = progress;
  if (verdict.kind !== 'succeeded' || !verdict.teaches) return Promise.resolve(null);
  return learnFrom(trx, { row, lesson: verdict.lesson, signals, input: execution?.input, spec });
}

async function stop(
  trx: Db,
  row: EscalationRow,
  { reason, error: last }: Extract<Verdict, { kind: 'stopped' }>,
  question: ReviewQuestion | null,
): Promise<Ending> {
  const error = stopFailure(reason, last);
  if (reason === 'cancelled') {
    await cancelEscalationReviews(trx, row.escalation_id);
    return { state: 'cancelled', error };
  }
  if (question === null) return { state: 'failed', error };
  const review = await askPerson(trx, row, { ...question, reason });
  if (review === null) return { state: 'failed', error };
  return { state: 'in_review', error: withReview(error, review), review_id: review.review_id };
}

function withReview(error: Failure, { review_id }: OpenedReview): Failure {
  return {
    ...error,
    details: { ...(error.details as JsonObject), review_id },
  };
}

/** The same question again when an answer to it did not help. @returns null when it was asked often enough */
async function askPerson(
  trx: Db,
  row: EscalationRow,
  { reason, ...question }: ReviewQuestion & { readonly reason: Exclude<StopReason, 'cancelled'> },
): Promise<OpenedReview | null> {
  const kind = reviewKindOf(reason);
  const text = explainStop(reason, row.job_type);
  const before = row.review_id === null ? undefined : await readReview(trx, row.review_id);
  if (before?.state === 'resolved' && before.kind === kind) {
    const { review_id, round } = before;
    return reopenReview(trx, {
      review_id,
      round,
      reason: `${text}; the last decision did not help`,
      ...question,
    });
  }
  const step = stepOf(row) ?? {};
  return openReview(trx, {
    project_id: row.project_id,
    kind,
    reason: text,
    escalation_id: row.escalation_id,
    ...step,
    ...question,
  });
}

function changeOf(row: EscalationRow, { next, execution }: Progress) {
  const { escalation_id, transition } = row;
  const { history, command } = next;
  const level = command.type === 'execute' ? command.level : row.escalation_level;
  const made = execution === undefined ? row.model_spec : modelSpecOf(execution.level, execution.model);
  const hasGrown = history.length > readLadder(row).history.length;
  const isKnownError = hasGrown && execution?.end.kind !== 'no_template';
  return {
    escalation_id,
    transition,
    ladder: next,
    escalation_level: level,
    leader_id: row.leader_id,
    escalation_history: history.map(toWireAttempt),
    escalation_advice: next.advice.map(toWireAdvice),
    model_spec: command.type === 'execute' ? modelSpecOf(command.level) : made,
    active_skills: execution === undefined ? row.active_skills : activeSkillsOf(execution),
    fingerprint: row.fingerprint ?? (isKnownError ? (history.at(-1)?.fingerprint ?? null) : null),
  };
}

/** The step's state and a line in the run's log. */
async function tellRun(
  trx: Db,
  row: EscalationRow,
  { event, next }: Progress,
  { state, error, review_id, skill_id }: Ending,
): Promise<void> {
  const step = stepOf(row);
  if (step === null) return;
  const { escalation_id } = row;
  const isDecision = event.review_id !== undefined && event.kind !== 'executed';
  await logStep(trx, step, isDecision ? 'step.reviewed' : 'step.escalated', {
    escalation_id,
    ...event,
    state,
    ...(skill_id === undefined ? {} : { skill_id }),
  });
  if (state === 'running' && row.state === 'in_review') {
    await holdStep(trx, step, 'retrying', { error: null, data: { escalation_id } });
  }
  if (state === 'in_review') {
    await holdStep(trx, step, 'in_review', { error, data: { escalation_id, review_id: review_id ?? null } });
  }
  if (state === 'failed' && error !== null) {
    await endStep(trx, { ...step, revision: next.revision }, 'failed', error);
  }
}
