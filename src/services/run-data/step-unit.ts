/** One step of a run, or one item of it, and the input that the definition gives it. */
import type { Failure, JsonObject } from '../../contracts/primitives.ts';
import type { CompiledStep } from '../../core/definition/compile/compile-definition.ts';
import type { StepKey } from '../../db/attempt/attempt.ts';
import { AppError } from '../../errors/app-error.ts';
import { evaluateInStep } from './evaluate-in-run.ts';
import type { RunContext } from './run-context.ts';
import type { StepResults } from './step-results.ts';

export interface StepUnit {
  readonly context: RunContext;
  readonly step: CompiledStep;
  readonly key: StepKey;
}

/** @throws AppError `not_found` */
export function stepOf(context: RunContext, stepId: string): CompiledStep {
  const step = context.compiled.steps[context.indexOf.get(stepId) ?? -1];
  if (step === undefined) throw new AppError('not_found', `run ${context.run_id} has no step ${stepId}`);
  return step;
}

export type ResolvedInput = { readonly input: JsonObject } | { readonly error: Failure };

/** The input that a step's expressions give, or why they give none. @param item 0 = of the step as a whole */
export async function resolveInput(
  context: RunContext,
  step: CompiledStep,
  results: StepResults,
  item = 0,
): Promise<ResolvedInput> {
  const evaluated = await evaluateInStep(results, context, { step, item }, step.input);
  return 'error' in evaluated ? evaluated : { input: evaluated.value as JsonObject };
}
