/**
 * One step of a run: resolve its input from the definition and the stored results, make a routed call, say what
 * became of it. Whatever it answers is already in the database.
 */
import type { Failure, Json, JsonObject } from '../../contracts/primitives.ts';
import { ExpressionError } from '../../core/expression/errors.ts';
import { evaluateTemplate } from '../../core/expression/evaluate.ts';
import { referencedSteps } from '../../core/expression/references.ts';
import type { CompiledStep } from '../../core/pipeline/compile-definition.ts';
import { resolveStepSettings } from '../../core/pipeline/step-settings.ts';
import type { StopSignal } from '../../core/stop.ts';
import type { StepKey } from '../../db/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { endStep, listStepResults } from '../../db/step.ts';
import { AppError } from '../../errors.ts';
import type { CallRouter, SuccessfulAttempt } from '../routing/call-capability.ts';
import { longestWaitMs } from '../routing/waiting-line.ts';
import type { RunContext, RunContexts } from './run-context.ts';
import type { StepResults } from './step-results.ts';

export interface StepRequest {
  readonly run_id: string;
  readonly step_id: string;
  /** Grows with each corrected input. */
  readonly revision: number;
}

export type StepExecution =
  | {
      readonly kind: 'succeeded';
      readonly output: Json;
      readonly attempt: SuccessfulAttempt | null;
    }
  | { readonly kind: 'failed' | 'unknown'; readonly error: Failure }
  | { readonly kind: 'retry'; readonly error: Failure; readonly delayMs: number }
  | { readonly kind: 'cancelled' };

export interface StepDependencies {
  readonly db: Db;
  readonly contexts: RunContexts;
  readonly results: StepResults;
  readonly callCapability: CallRouter['callCapability'];
}

export interface StepControl {
  /** 1 for the first time that the owner comes with this step. */
  readonly round: number;
  /** What is left of the step's total timeout. */
  readonly remainingMs: number;
  readonly signal: StopSignal;
}

export type ExecuteStep = (request: StepRequest, control: StepControl) => Promise<StepExecution>;

export const createExecuteStep =
  ({ db, contexts, results, callCapability }: StepDependencies): ExecuteStep =>
  async (request, { round, remainingMs, signal }) => {
    const beganAt = performance.now();
    const context = await contexts.open(request.run_id);
    const step = stepOf(context, request.step_id);
    const key: StepKey = { ...request, item: 0 };
    const resolved = await resolveInput(context, step, results);
    if ('error' in resolved) {
      await endStep(db, key, 'failed', resolved.error);
      return { kind: 'failed', error: resolved.error };
    }
    const { definition } = step;
    const settings = resolveStepSettings(context.definition, definition);
    const end = await callCapability({
      projectId: context.project_id,
      key: `${request.run_id}.${request.step_id}.0.${request.revision}`,
      isKeyNew: false,
      step: key,
      isAtMostOnce: settings.retry.max === 0,
      input: resolved.input,
      route: {
        capability: definition.capability,
        versionRange: definition.capability_version ?? null,
        tags: definition.tags ?? [],
        priority: settings.priority ?? context.priority,
        ceilingUsd: lowest(settings.ceilingUsd, context.ceilingUsd),
        timeoutMs: Math.max(1, Math.min(settings.timeoutMs, remainingMs)),
      },
      retry: settings.retry,
      round,
      maxWaitMs: Math.min(longestWaitMs, remainingMs),
      signal,
    });
    switch (end.kind) {
      case 'succeeded':
        // After a failed attempt the step has cost more than this attempt: let the database say how much.
        if (end.attempt?.number === 1) {
          results.remember(request.run_id, request.step_id, end.output, end.attempt.cost_usd);
        }
        return end;
      case 'failed':
      case 'unknown':
        if (!end.isRecorded) await endStep(db, key, 'failed', end.error);
        return end;
      case 'closed':
        return readEnd(db, key);
      case 'retry': {
        const left = remainingMs - (performance.now() - beganAt);
        if (end.delayMs + shortestRoundMs < left) return end;
        const error = outOfTime(end.error, settings.totalTimeoutMs);
        await endStep(db, key, 'failed', error);
        return { kind: 'failed', error };
      }
      case 'cancelled':
        return end;
    }
  };

/** With less time than this, no call is begun. */
const shortestRoundMs = 100;

const outOfTime = (last: Failure, totalTimeoutMs: number): Failure => ({
  code: 'step_timeout',
  message: `not done within ${totalTimeoutMs} ms; last: ${last.message}`,
  details: { code: last.code, ...(last.details === undefined ? {} : { last: last.details }) },
});

const stepOf = (context: RunContext, stepId: string): CompiledStep => {
  const step = context.compiled.steps[context.indexOf.get(stepId) ?? -1];
  if (step === undefined) throw new AppError('not_found', `run ${context.run_id} has no step ${stepId}`);
  return step;
};

const lowest = (a: number | null, b: number | null): number | null =>
  a === null ? b : b === null ? a : Math.min(a, b);

/** The input that a step's expressions give, or why they give none. */
export const resolveInput = async (
  context: RunContext,
  step: CompiledStep,
  results: StepResults,
): Promise<{ readonly input: JsonObject } | { readonly error: Failure }> => {
  const steps = await results.scopeOf(context.run_id, referencedSteps(step.input));
  try {
    return { input: evaluateTemplate(step.input, { ...context.scope, steps }) as JsonObject };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return { error: { code: 'expression_unresolved', message: error.message } };
  }
};

/** The end that somebody else wrote. While there is none, another attempt is on its way: come again. */
const readEnd = async (db: Db, { run_id, step_id }: StepKey): Promise<StepExecution> => {
  const [row] = await listStepResults(db, run_id, [step_id]);
  const error = row?.error ?? { code: 'contact_lost', message: 'a later attempt has taken over' };
  switch (row?.state) {
    case 'succeeded':
      return { kind: 'succeeded', output: row.output, attempt: null };
    case 'failed':
    case 'unknown':
      return { kind: row.state, error };
    case 'cancelled':
    case 'skipped':
      return { kind: 'cancelled' };
    default:
      return { kind: 'retry', error, delayMs: 1_000 };
  }
};
