/**
 * Executes one level of the ladder, for a job without a step or for a corrected input of a step.
 *
 * For a job, level 0 gives the text of the best skill's literal template; above it a model answers with the result,
 * or gives up. `result_schema` decides whether a result is a success; for a corrected input the capability decides.
 */

import type { CancelSignal } from '@capstan/core/cancellation';
import type { EscalationAdvice, EscalationAttempt } from '@capstan/core/contracts/escalation';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { Meter, workLimits } from '@capstan/core/expression/meter';
import {
  type AskedCorrection,
  type CorrectionAnswer,
  type CorrectionPorts,
  type ExecutionEnd,
  endExecution,
  failedCorrection,
  interruptionMs,
  type LevelExecution,
  type NumberedCorrection,
  type RanCorrection,
} from '@capstan/core/ladder/execute-correction';
import { ladderMs } from '@capstan/core/ladder/levels';
import type { RankedSkill } from '@capstan/core/skills/match';
import { applyTemplate, parseTemplate } from '@capstan/core/skills/template';
import type { StepExecution, WaitingStep } from '@capstan/core/workflow-payloads';
import type { Ctx, WorkerCtx } from '../../../context.ts';
import type { NewEscalation } from '../../../db/escalation/escalation.ts';
import { listTransitionRevisions, storeStepRevision } from '../../../db/step/step-revision.ts';
import { evaluateNow, turnFor } from '../../../parts/expression-work.ts';
import { executeRevision } from '../../steps/execution.ts';
import type { EscalatedTask } from '../ladder/escalated-task.ts';
import {
  given,
  shortenError,
  showAdvice,
  showHistory,
  showSkills,
  writeCorrectPrompt,
  writeExecutePrompt,
} from '../prompts.ts';
import { readCorrect, readExecute } from './model-answer.ts';
import { askModel, type ModelCall, type ModelEnd } from './model-question.ts';

export interface LadderJob
  extends Pick<
    NewEscalation,
    'project_id' | 'job_type' | 'prompt' | 'context' | 'repo_context' | 'signals' | 'result_schema'
  > {
  readonly history: readonly EscalationAttempt[];
  readonly advice: readonly EscalationAdvice[];
  /** The fault of the model's previous answer. */
  readonly malformed: string | null;
}

export async function executeJob(
  ctx: Ctx,
  job: LadderJob,
  { level, call }: { readonly level: number; readonly call: ModelCall },
): Promise<LevelExecution> {
  return level === 0 ? applyTemplates(ctx, job) : askExecutor(ctx, job, { level, call });
}

function lastErrorOf({ history }: Pick<LadderJob, 'history'>): string | null {
  return history.at(-1)?.error ?? null;
}

async function checkResult(
  { validator }: Pick<Ctx, 'validator'>,
  { result_schema }: LadderJob,
  result: Json,
): Promise<ExecutionEnd> {
  const [fault] = result_schema === null ? [] : await validator.ofSchema(result_schema)(result);
  if (fault === undefined) return { kind: 'succeeded', result };
  const message = `the result does not match result_schema: ${fault.pointer || '/'} ${fault.message}`;
  return { kind: 'failed', class: 'real', error: { code: 'result_invalid', message } };
}

/** Expands a skill's template for the job; null when it gives no result. */
function expandTemplate(
  { skill, groups }: RankedSkill,
  { context = null }: LadderJob,
  meter: Meter,
): Json | null {
  const parsing = parseTemplate(skill.template ?? '');
  if (!parsing.ok || parsing.template.kind !== 'text') return null;
  const { template } = parsing;
  const scope = { input: context, match: groups };
  const expanded = evaluateNow(meter, () => applyTemplate(template, scope, meter));
  return expanded.ok ? expanded.input : null;
}

async function applyTemplates(
  ctx: Pick<Ctx, 'skillMatcher' | 'validator'>,
  job: LadderJob,
): Promise<LevelExecution> {
  const { project_id, job_type, signals } = job;
  const query = { project_id, job_type, signals, error: lastErrorOf(job), with_template: true };
  const tried: RankedSkill[] = [];
  let last: ExecutionEnd | null = null;
  const meter = new Meter(workLimits.request);
  for (const ranked of await ctx.skillMatcher.match(query)) {
    const turn = turnFor();
    if (turn !== null) await turn;
    const result = expandTemplate(ranked, job, meter);
    if (result === null) continue;
    tried.push(ranked);
    const used = tried.map(({ skill }) => skill.id);
    last = await checkResult(ctx, job, result);
    if (last.kind === 'succeeded') {
      return endExecution(0, last, { skills: tried, used, solved_by: ranked.skill.id });
    }
  }
  const message = `level 0 has no template for a job of type ${job_type}`;
  const end = last ?? { kind: 'no_template' as const, error: { code: 'no_template', message } };
  return endExecution(0, end, { skills: tried, used: tried.map(({ skill }) => skill.id) });
}

function showJob(job: LadderJob, skills: readonly RankedSkill[]): JsonObject {
  return {
    job_type: job.job_type,
    prompt: job.prompt,
    ...given('context', job.context),
    ...given('repo_context', job.repo_context),
    ...given('result_schema', job.result_schema),
    history: showHistory(job.history),
    advice: showAdvice(job.advice),
    skills: showSkills(skills),
    ...given('invalid_answer', job.malformed === null ? null : shortenError(job.malformed)),
  };
}

async function askExecutor(
  ctx: Ctx,
  job: LadderJob,
  { level, call }: { readonly level: number; readonly call: ModelCall },
): Promise<LevelExecution> {
  const { project_id, job_type, signals } = job;
  const skills = await ctx.skillMatcher.match({ project_id, job_type, signals, error: lastErrorOf(job) });
  const messages = writeExecutePrompt(showJob(job, skills));
  const end = await askModel(ctx, call, { level, kind: 'execute', messages });
  if (end.kind === 'interrupted') return endExecution(level, { delayMs: interruptionMs, ...end });
  if (end.kind !== 'answered') return endExecution(level, end, { skills });
  const reading = readExecute(end.answer);
  const { model } = end;
  switch (reading.kind) {
    case 'malformed': {
      const error = { code: 'output_invalid', message: reading.message };
      return endExecution(level, { kind: 'failed', class: 'malformed', error }, { model, skills });
    }
    case 'gave_up': {
      const error = { code: 'gave_up', message: `the executor gave up: ${reading.reason}` };
      return endExecution(level, { kind: 'gave_up', error }, { model, skills });
    }
    case 'result':
      return endExecution(level, await checkResult(ctx, job, reading.result), {
        model,
        skills,
        used: reading.used,
      });
  }
}

// Executes a corrected input of a step by the ordinary path: it is first stored as the step's next revision, so that a
// repeated transition runs the same input under the same key. The capability decides about success.

/** Waits for an instance use the delays of a later attempt. */
const round = 4;

interface CorrectionRun {
  readonly task: EscalatedTask;
  readonly correction: NumberedCorrection;
  readonly signal: CancelSignal;
}

/** @returns the executed input, which is the stored one when the transition is repeated, and its end */
async function runCorrection(
  ctx: WorkerCtx,
  { task: { row, step }, correction, signal }: CorrectionRun,
): Promise<RanCorrection> {
  const { escalation_id, transition } = row;
  const stored = await storeStepRevision(ctx.db, { ...step, ...correction, escalation_id, transition });
  const request = { ...step, revision: stored.revision };
  // The ladder's workflow aborts it in time.
  const done = await executeRevision(ctx, request, { round, remainingMs: ladderMs, signal });
  return { input: stored.input, source: stored.source, end: toExecutionEnd(done) };
}

function toExecutionEnd(done: StepExecution | WaitingStep): ExecutionEnd {
  switch (done.kind) {
    case 'succeeded':
      return { kind: 'succeeded' };
    case 'failed':
    case 'unknown':
      return failedCorrection(done.error);
    case 'waiting':
      return { kind: 'in_line', until: done.until?.getTime() ?? null };
    case 'retry':
      return { kind: 'interrupted', delayMs: done.delayMs };
    case 'skipped':
    case 'cancelled':
      return { kind: 'interrupted', delayMs: interruptionMs };
  }
}

/** The corrections of an escalated step by the database, the level's model and the ordinary execution of a step. */
export function correctionPortsOf(ctx: WorkerCtx, task: EscalatedTask, call: ModelCall): CorrectionPorts {
  const { db, skillMatcher } = ctx;
  const { row, signals, error } = task;
  const { project_id, job_type, escalation_id, transition } = row;
  const query = { project_id, job_type, signals, error };
  const read = (end: ModelEnd): CorrectionAnswer =>
    end.kind === 'answered' ? readCorrect(end.answer, task.current) : end;
  return {
    task,
    error,
    stored: () => listTransitionRevisions(db, escalation_id, transition),
    matchTemplates: () => skillMatcher.match({ ...query, with_template: true }),
    ask: async (level): Promise<AskedCorrection> => {
      const skills = await skillMatcher.match(query);
      const messages = writeCorrectPrompt(await showTask(task, skills));
      const end = await askModel(ctx, call, { level, kind: 'correct', messages });
      return { answer: read(end), model: end.kind === 'answered' ? end.model : null, skills };
    },
    run: (correction) => runCorrection(ctx, { task, correction, signal: call.signal }),
  };
}

async function showTask(task: EscalatedTask, skills: readonly RankedSkill[]): Promise<JsonObject> {
  const { definition, ladder, spec, current, error } = task;
  const findings = (await spec?.find(current)) ?? [];
  return {
    capability: task.capability,
    step: definition.id,
    input: current,
    ...given('step_description', definition.description),
    ...given('schema', spec?.schema),
    ...given('error', error === null ? null : shortenError(error)),
    validation_errors: findings.map(({ pointer, message }) => ({ pointer, message })),
    history: showHistory(ladder.history),
    advice: showAdvice(ladder.advice),
    skills: showSkills(skills),
    ...given('invalid_answer', malformedOf(task)),
  };
}

function malformedOf({ ladder: { command } }: EscalatedTask): string | null {
  return command.type === 'execute' && command.malformed !== null ? shortenError(command.malformed) : null;
}
