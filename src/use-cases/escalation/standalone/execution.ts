/**
 * One attempt at a level for an external caller that keeps its own history. A failure is answered with advice and the
 * next level; a success after advice becomes a skill; a reason that only a person can resolve opens a review. A level
 * without a model falls through to the next one that has one.
 *
 * `/execute` returns a result, a failure with advice and the next level, or a review.
 */

import type { EscalationAttempt, ExecuteAnswer, ExecuteRequest } from '@capstan/core/contracts/escalation';
import type { Failure, Json } from '@capstan/core/contracts/primitives';
import type { ReviewKind } from '@capstan/core/contracts/review';
import type { Skill } from '@capstan/core/contracts/skill';
import { AppError } from '@capstan/core/errors/app-error';
import { historyTextOf } from '@capstan/core/ladder/error-text';
import type { LevelExecution } from '@capstan/core/ladder/execute-correction';
import { exhaustedText, humanLevel, labelOf, reviewDueMs, topLevel } from '@capstan/core/ladder/levels';
import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import type { Ctx } from '../../../context.ts';
import { readCallCost, readUnixTime } from '../../../db/escalation/escalation-transition.ts';
import { findSkill } from '../../../db/skill.ts';
import type { LevelAdvice } from '../../../parts/cache/advice-cache.ts';
import { toSkill } from '../../../parts/skill-matcher.ts';
import { openReview } from '../../reviews/opening.ts';
import { learnSkill } from '../../skills/learning.ts';
import { recordSkillUses } from '../../skills/use.ts';
import { activeSkillsOf, skillUsesOf } from '../ladder/learning.ts';
import { fingerprintOf, modelSpecOf } from '../ladder/stored-ladder.ts';
import { executeJob, type LadderJob } from '../levels/execution.ts';
import { findLevel, requireLevel } from '../levels/model-question.ts';
import { type AdviseCtx, type Asker, adviseOnce, readLeft, toCallError } from './advice.ts';

/** One call of `/execute`. */
interface ExecuteCall {
  readonly asker: Asker;
  readonly request: ExecuteRequest;
  /** The caller is trusted for the advice that it sends. */
  readonly vouches: boolean;
}

async function costOf({ db }: Ctx, { key: { project_id }, owner }: Asker): Promise<number> {
  return fromNanoUsd(BigInt((await readCallCost(db, project_id, owner)).cost_nano));
}

function factsOf(ctx: Ctx, execution: LevelExecution) {
  return {
    model_spec: modelSpecOf(ctx, execution.level, execution.model),
    active_skills: [...activeSkillsOf(execution)],
  };
}

/** Opens a review. */
async function answerHuman(
  ctx: Ctx,
  { asker, request }: ExecuteCall,
  { why, kind = 'escalation' }: { readonly why: string; readonly kind?: ReviewKind },
): Promise<ExecuteAnswer> {
  const { job_type, prompt, context, escalation_history, escalation_advice } = request;
  const { review_id } = await openReview(ctx.db, {
    project_id: asker.key.project_id,
    kind,
    due_in_ms: reviewDueMs('standard'),
    reason: `a job of type ${job_type} needs a person: ${why}`,
    payload: {
      job_type,
      error: escalation_history.at(-1)?.error ?? '',
      input: { prompt, ...(context === undefined ? {} : { context }) },
      history: escalation_history,
      advice: escalation_advice,
    },
  });
  return {
    success: false,
    result: null,
    error: exhaustedText,
    new_level: humanLevel,
    review_id,
    model_spec: modelSpecOf(ctx, humanLevel),
    active_skills: [],
    cost_usd: await costOf(ctx, asker),
  };
}

/** Null: none is available now; the caller requests `/advise` later. */
async function adviseAfter(
  ctx: AdviseCtx,
  { asker, request }: ExecuteCall,
  failed: EscalationAttempt,
): Promise<LevelAdvice | null> {
  const { job_type, prompt, context, signals, repo_context = '', escalation_advice } = request;
  try {
    return await adviseOnce(ctx, asker, {
      from_level: failed.level + 1,
      job_type,
      error: failed.error,
      prompt,
      context,
      signals,
      repo_context,
      escalation_advice,
      escalation_history: [...request.escalation_history, failed],
    });
  } catch (error) {
    if (error instanceof AppError) return null;
    throw error;
  }
}

async function answerFailure(
  ctx: AdviseCtx,
  call: ExecuteCall,
  { execution, failure }: { readonly execution: LevelExecution; readonly failure: Failure },
): Promise<ExecuteAnswer> {
  const { level } = execution;
  const error = historyTextOf(failure);
  const attempted_at = await readUnixTime(ctx.db);
  const failed = { level, label: labelOf(level), attempted_at, error };
  if (level >= topLevel) return answerExhausted(ctx, call, failed);
  const advice = await adviseAfter(ctx, call, failed);
  const isHuman = advice?.from_level === humanLevel;
  const next =
    advice === null || isHuman
      ? {}
      : {
          advice: { ...advice, label: labelOf(advice.from_level) },
          new_level: advice.suggested_executor_level,
        };
  return {
    success: false,
    result: null,
    error,
    attempt: failed,
    ...(isHuman ? { new_level: humanLevel } : next),
    ...factsOf(ctx, execution),
    cost_usd: await costOf(ctx, call.asker),
  };
}

/** The specification's loop stops here: a review is opened, which shows this failure too. */
async function answerExhausted(
  ctx: AdviseCtx,
  { request, ...call }: ExecuteCall,
  attempt: EscalationAttempt,
): Promise<ExecuteAnswer> {
  const escalation_history = [...request.escalation_history, attempt];
  const asking = { ...call, request: { ...request, escalation_history } };
  return { ...(await answerHuman(ctx, asking, { why: 'no level is left to try' })), attempt };
}

async function answerSuccess(
  ctx: Ctx,
  call: ExecuteCall,
  { execution, result }: { readonly execution: LevelExecution; readonly result: Json },
): Promise<ExecuteAnswer> {
  const skill = execution.solved_by === null ? await learn(ctx, call) : null;
  return {
    success: true,
    result,
    ...(skill === null ? {} : { skill_candidate: skill }),
    ...factsOf(ctx, execution),
    cost_usd: await costOf(ctx, call.asker),
  };
}

/** The last advice as a skill for the error that it answered. */
async function learn({ db }: Ctx, { asker, request, vouches }: ExecuteCall): Promise<Skill | null> {
  const { project_id } = asker.key;
  const { job_type, signals, escalation_history, escalation_advice } = request;
  const advice = escalation_advice.at(-1);
  const attempt = escalation_history.at(-1);
  if (advice === undefined || attempt === undefined) return null;
  const skillId = await db.transaction((trx) =>
    learnSkill(trx, {
      project_id,
      job_type,
      escalation_id: null,
      signals,
      correction: null,
      error: attempt.error,
      fingerprint: fingerprintOf(attempt.error),
      from_level: advice.from_level,
      instructions: advice.instructions,
      trust: vouches ? 'trusted' : 'candidate',
    }),
  );
  const row = skillId === null ? undefined : await findSkill(db, project_id, skillId);
  return row === undefined ? null : toSkill(row);
}

function toJob({ key: { project_id } }: Asker, request: ExecuteRequest): LadderJob {
  return {
    project_id,
    job_type: request.job_type,
    prompt: request.prompt,
    context: request.context,
    repo_context: request.repo_context ?? '',
    signals: request.signals,
    malformed: null,
    result_schema: request.result_schema ?? null,
    history: request.escalation_history,
    advice: request.escalation_advice,
  };
}

/** A model whose answer is invalid is asked once more. */
async function attempt(ctx: Ctx, { asker, request }: ExecuteCall, level: number): Promise<LevelExecution> {
  const job = toJob(asker, request);
  const run = async (malformed: string | null): Promise<LevelExecution> => {
    const { key: caller, owner, signal } = asker;
    const key = `${owner}.execute${malformed === null ? '' : '.again'}`;
    const leftUsd = await readLeft(ctx, asker);
    const call = { projectId: caller.project_id, caller, key, leftUsd, round: 1, signal };
    return executeJob(ctx, { ...job, malformed }, { level, call });
  };
  const first = await run(null);
  const { end } = first;
  return end.kind === 'failed' && end.class === 'malformed' ? run(historyTextOf(end.error)) : first;
}

/** @throws AppError of the routing table, when the level could not be asked */
export async function executeOnce(ctx: AdviseCtx, call: ExecuteCall): Promise<ExecuteAnswer> {
  const { asker, request } = call;
  const level = findLevel(ctx, asker.key.project_id, request.level);
  if (level === humanLevel) {
    const why = request.level === humanLevel ? 'it asks for one' : 'no model is there';
    return answerHuman(ctx, call, { why });
  }
  requireLevel(ctx, asker.key, level);
  const execution = await attempt(ctx, call, level);
  const uses = skillUsesOf(execution, request);
  const { project_id } = asker.key;
  await recordSkillUses(ctx.db, { project_id, occasion: null, uses }, openReview);
  for (const { outcome } of uses) ctx.telemetry.metrics.add('skill_uses_total', { outcome });
  return answer(ctx, call, execution);
}

function answer(ctx: AdviseCtx, call: ExecuteCall, execution: LevelExecution): Promise<ExecuteAnswer> {
  const { end } = execution;
  switch (end.kind) {
    case 'succeeded':
      return answerSuccess(ctx, call, { execution, result: end.result ?? null });
    case 'no_template':
    case 'gave_up':
      return answerFailure(ctx, call, { execution, failure: end.error });
    case 'unavailable':
      return answerHuman(ctx, call, { why: 'no model is there' });
    case 'in_line': // only the calls of steps wait in line
    case 'too_late':
      throw toCallError({ kind: 'interrupted' });
    case 'interrupted':
      throw toCallError(end);
    case 'failed':
      if (end.class === 'config') {
        return answerHuman(ctx, call, { why: historyTextOf(end.error), kind: 'ops' });
      }
      if (end.class !== 'real' && end.class !== 'malformed') throw toCallError(end);
      return answerFailure(ctx, call, { execution, failure: end.error });
  }
}
