/**
 * An escalated step, as executions and reviewers see it. An execution gets the step as its pipeline has it, its inputs
 * so far, and all other known facts; a person sees everything that a decision needs.
 */

import { createHash } from 'node:crypto';
import type { BudgetRefusal } from '@capstan/core/contracts/money';
import type { PipelineDefinition, StepDefinition } from '@capstan/core/contracts/pipeline';
import type { Json, JsonObject, Priority } from '@capstan/core/contracts/primitives';
import type { ReviewPayload } from '@capstan/core/contracts/review';
import { capabilityOf } from '@capstan/core/definition/step-settings';
import { AppError } from '@capstan/core/errors/app-error';
import { type CorrectionTask, proposeCorrections, withAnswers } from '@capstan/core/ladder/correction';
import { reviewKindOf } from '@capstan/core/ladder/human-review';
import { type Ladder, toWireAdvice, toWireAttempt } from '@capstan/core/ladder/ladder';
import { reviewDueMs } from '@capstan/core/ladder/levels';
import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import { signalsOfStep } from '@capstan/core/skills/match';
import type { Ctx } from '../../../context.ts';
import type { StepItemKey } from '../../../db/attempt/attempt.ts';
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import { type ListedRevision, listStepRevisions } from '../../../db/step/step-revision.ts';
import { type CurrentSpec, specTargetOf } from '../../../parts/fleet/specs.ts';
import { budgetScopeOf } from '../../reviews/opening.ts';
import { readLadder, stepOf } from './stored-ladder.ts';

export interface EscalatedTask extends CorrectionTask {
  readonly row: EscalationRow;
  readonly ladder: Ladder;
  readonly step: StepItemKey;
  readonly definition: StepDefinition;
  /** The priority of its calls. */
  readonly priority: Priority;
  readonly spec: CurrentSpec | null;
  readonly signals: readonly string[];
  /** The last error of the history. */
  readonly error: string | null;
}

function findStepDefinition({ steps }: Pick<PipelineDefinition, 'steps'>, stepId: string): StepDefinition {
  const found = steps.find(({ id }) => id === stepId);
  if (found === undefined) throw new AppError('not_found', `the pipeline has no step ${stepId}`);
  return found;
}

/** Lists the corrections that were claimed: one without budget has not failed. */
function listClaimed(revisions: readonly ListedRevision[]): readonly Json[] {
  return revisions.filter(({ was_claimed }) => was_claimed).map(({ input }) => input);
}

export async function readStepTask({ db, contexts, specs }: Ctx, row: EscalationRow): Promise<EscalatedTask> {
  const step = stepOf(row) as StepItemKey;
  const context = await contexts.open(step.run_id);
  const definition = findStepDefinition(context.definition, step.step_id);
  const [spec, revisions] = await Promise.all([
    specs.read(context.project_id, specTargetOf(definition)),
    listStepRevisions(db, step),
  ]);
  const earlier = revisions.filter(
    ({ escalation_id, transition }) => escalation_id !== row.escalation_id || transition !== row.transition,
  );
  const ladder = readLadder(row);
  const original = row.context;
  const capability = capabilityOf(definition);
  const signals = signalsOfStep({
    capability,
    capability_version: spec?.version ?? null,
    pipeline: context.pipeline,
    step_id: step.step_id,
    tags: definition.tags ?? [],
  });
  return {
    row,
    ladder,
    step,
    definition,
    priority: definition.priority ?? context.priority,
    capability,
    repair: ladder.policy?.repair ?? 'off',
    spec,
    original,
    current: earlier.at(-1)?.input ?? original,
    signals: [...new Set([...row.signals, ...signals])],
    failed: [original, ...listClaimed(earlier)],
    digest: (text) => createHash('sha256').update(text).digest('hex'),
    error: ladder.history.at(-1)?.error ?? null,
  };
}

// The review of a ladder: everything that a decision needs.

export interface ReviewQuestion {
  readonly payload: ReviewPayload;
  readonly due_in_ms: number;
  /** The exhausted budget; a raise raises it, not the ladder's own limit. */
  readonly shortage?: { readonly subject: string; readonly minimum_usd: number };
}

function shortageOf({ project_id, run_id }: EscalationRow, refusal: BudgetRefusal | undefined) {
  if (refusal === undefined) return {};
  const subject = budgetScopeOf(refusal, { project_id, run_id: run_id ?? '' });
  return { shortage: { subject, minimum_usd: refusal.minimum_usd } };
}

/**
 * The error that a person has to correct. For a step it is the failure of its own call, first in the history, whatever
 * models have changed since. If only an operator or money can help, it is the last error.
 */
function errorsOf(row: EscalationRow, { command, history }: Ladder): { error: string; last_error?: string } {
  const seen = command.type === 'stop' ? command.error : null;
  const last = seen ?? history.at(-1)?.error ?? '';
  const isOfInput = command.type === 'stop' && reviewKindOf(command.reason) === 'escalation';
  const error = stepOf(row) !== null && isOfInput ? (history[0]?.error ?? last) : last;
  return error === last ? { error } : { error, last_error: last };
}

/** Shows the part of a ladder that every kind of review has. */
function showLadder(row: EscalationRow, ladder: Ladder): ReviewPayload {
  const { command, history, advice } = ladder;
  const { error, ...seenLast } = errorsOf(row, ladder);
  const details: JsonObject = {
    escalation_id: row.escalation_id,
    ...(command.type === 'stop' ? { reason: command.reason, ...command.refusal } : {}),
    ...(row.max_usd === null ? {} : { max_usd: Number(row.max_usd) }),
    cost_usd: fromNanoUsd(BigInt(row.cost_nano)),
    ...seenLast,
  };
  return {
    job_type: row.job_type,
    error,
    history: history.map(toWireAttempt),
    advice: advice.map(toWireAdvice),
    details,
  };
}

/** @param next the stopped ladder, with its lists */
export async function writeQuestion(ctx: Ctx, row: EscalationRow, next: Ladder): Promise<ReviewQuestion> {
  const common = showLadder(row, next);
  const { command } = next;
  const shortage = shortageOf(row, command.type === 'stop' ? command.refusal : undefined);
  if (stepOf(row) === null) {
    const { prompt, context, has_context, repo_context } = row;
    const input = { prompt, ...(has_context ? { context } : {}), repo_context };
    return {
      payload: { ...common, input, allow_output: true },
      due_in_ms: reviewDueMs('standard'),
      ...shortage,
    };
  }
  // The transition's own correction has failed by now.
  const task = await readStepTask(ctx, { ...row, transition: row.transition + 1 });
  const { definition, spec, current, priority } = task;
  const findings = (await spec?.find(current)) ?? [];
  const payload: ReviewPayload = {
    ...common,
    input: current,
    validation_errors: findings.map(({ pointer, message }) => ({ pointer, message })),
    proposals: await withAnswers(task, proposeCorrections),
    ...(spec === null ? {} : { schema: spec.schema }),
    allow_output: definition.allow_output ?? false,
    optional: definition.optional ?? false,
  };
  return { payload, due_in_ms: reviewDueMs(priority), ...shortage };
}
