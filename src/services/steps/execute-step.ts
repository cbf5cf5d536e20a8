/**
 * The executions of a step. The first one, with the input that the definition gives, may end in an escalation; those of
 * corrected inputs are made by the ladder, which also says how the step ends.
 */
import type { ErrorCode } from '../../contracts/errors.ts';
import type { Failure, JsonObject } from '../../contracts/primitives.ts';
import { ExpressionError } from '../../core/expression/errors.ts';
import { evaluateTemplate } from '../../core/expression/evaluate.ts';
import { referencedSteps } from '../../core/expression/references.ts';
import type { CompiledStep } from '../../core/pipeline/compile-definition.ts';
import { type ResolvedEscalation, resolveEscalation } from '../../core/pipeline/escalation-settings.ts';
import type { LadderPlace } from '../../core/run/escalate-input.ts';
import type { StepKey } from '../../db/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { endStep, listStepResults } from '../../db/step.ts';
import { findRevisionFailure, readStepRevision } from '../../db/step-revision.ts';
import { AppError } from '../../errors.ts';
import type { RunContext, RunContexts } from './run-context.ts';
import {
  callKeyOf,
  type RunStepDependencies,
  runStep,
  type StepControl,
  type StepExecution,
} from './run-step.ts';
import type { StepResults } from './step-results.ts';

export interface StepRequest {
  readonly run_id: string;
  readonly step_id: string;
  /** Grows with each corrected input. */
  readonly revision: number;
  /** The run knows what to do with an escalation. */
  readonly escalates?: boolean;
}

/** A failure that a corrected input may cure. */
export interface FailedStep extends StepKey {
  readonly project_id: string;
  readonly pipeline: string;
  readonly capability: string;
  readonly tags: readonly string[];
  readonly input: JsonObject;
  readonly failure: Failure;
  readonly policy: ResolvedEscalation;
}

export interface EscalatedExecution {
  readonly kind: 'escalated';
  readonly error: Failure;
  readonly place: LadderPlace;
}

export interface StepDependencies extends RunStepDependencies {
  readonly contexts: RunContexts;
}

export type ExecuteStep = (
  request: StepRequest,
  control: StepControl,
) => Promise<StepExecution | EscalatedExecution>;

/** Makes sure that the escalation of a failed step is there, however often it is asked. */
export type OpenForStep = (failed: FailedStep) => Promise<LadderPlace>;

/** Failures that the input is to blame for, or the answer to this input. */
const correctable: ReadonlySet<ErrorCode> = new Set(['input_rejected', 'input_invalid', 'output_invalid']);

export const createExecuteStep =
  (dependencies: StepDependencies & { readonly openForStep: OpenForStep }): ExecuteStep =>
  async ({ escalates = false, ...request }, control) => {
    const { db, contexts, results, openForStep } = dependencies;
    const context = await contexts.open(request.run_id);
    const step = stepOf(context, request.step_id);
    const key: StepKey = { ...request, item: 0 };
    const resolved = await resolveInput(context, step, results);
    if ('error' in resolved) {
      await endStep(db, key, 'failed', resolved.error);
      return { kind: 'failed', error: resolved.error };
    }
    const { input } = resolved;
    const holds = (code: ErrorCode): boolean => escalates && correctable.has(code);
    let failure = escalates && control.round > 1 ? await findHeldFailure(db, key, holds) : null;
    if (failure === null) {
      const end = await runStep(dependencies, { context, step, key, input, holds }, control);
      if (end.kind !== 'failed' || !holds(end.error.code as ErrorCode)) return end;
      failure = end.error;
    }
    const place = await openForStep(describeFailure(context, step, { ...key, input, failure }));
    return { kind: 'escalated', error: failure, place };
  };

export interface RevisionRequest extends StepKey {
  /** 0 = the definition's own input once more. */
  readonly revision: number;
}

/**
 * Any failure leaves the step open, and so does a cancel: its ladder or its run goes on with it. A corrected input that
 * was refused, or answered wrongly, is not sent again: asked once more, that is the answer.
 */
export type ExecuteRevision = (request: RevisionRequest, control: StepControl) => Promise<StepExecution>;

export const createExecuteRevision =
  (dependencies: StepDependencies): ExecuteRevision =>
  async ({ run_id, step_id, item, revision }, control) => {
    const { db, contexts, results } = dependencies;
    const context = await contexts.open(run_id);
    const step = stepOf(context, step_id);
    const key: StepKey = { run_id, step_id, item, revision };
    const resolved =
      revision === 0
        ? await resolveInput(context, step, results)
        : { input: await readRevisionInput(db, key) };
    if ('error' in resolved) return { kind: 'failed', error: resolved.error };
    const known = revision === 0 ? undefined : await findRevisionFailure(db, key, callKeyOf(key));
    if (known !== undefined) return { kind: 'failed', error: known };
    return runStep(dependencies, { context, step, key, input: resolved.input, holds: () => true }, control);
  };

/** A worker that was killed after the failure was stored left the step open: it is not sent again. */
const findHeldFailure = async (
  db: Db,
  { run_id, step_id }: StepKey,
  holds: (code: ErrorCode) => boolean,
): Promise<Failure | null> => {
  const [row] = await listStepResults(db, run_id, [step_id]);
  if (row?.error == null) return null;
  const isHeld =
    row.state === 'in_review' || (row.state === 'retrying' && holds(row.error.code as ErrorCode));
  return isHeld ? row.error : null;
};

const describeFailure = (
  { project_id, pipeline, definition }: RunContext,
  step: CompiledStep,
  failed: StepKey & Pick<FailedStep, 'input' | 'failure'>,
): FailedStep => ({
  ...failed,
  project_id,
  pipeline,
  capability: step.definition.capability,
  tags: step.definition.tags ?? [],
  policy: resolveEscalation(definition, step.definition),
});

const readRevisionInput = async (db: Db, key: StepKey): Promise<JsonObject> => {
  const row = await readStepRevision(db, key, key.revision);
  if (row === undefined) {
    throw new AppError(
      'not_found',
      `step ${key.step_id} of run ${key.run_id} has no revision ${key.revision}`,
    );
  }
  return row.input as JsonObject;
};

const stepOf = (context: RunContext, stepId: string): CompiledStep => {
  const step = context.compiled.steps[context.indexOf.get(stepId) ?? -1];
  if (step === undefined) throw new AppError('not_found', `run ${context.run_id} has no step ${stepId}`);
  return step;
};

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
