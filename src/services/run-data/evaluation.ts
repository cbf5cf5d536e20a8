/**
 * Values of a run's expressions, the inputs of its steps among them: from the job, the stored results and, for an
 * item, the list it comes from. An expression that cannot be worked out is a failure of the step, never of the
 * process.
 */
import type { Failure, Json, JsonObject } from '../../contracts/primitives.ts';
import type { CompiledStep } from '../../core/definition/compile.ts';
import { evaluateTemplate } from '../../core/expression/evaluate.ts';
import type { ExpressionScope } from '../../core/expression/evaluation.ts';
import type { CompiledTemplate } from '../../core/expression/template.ts';
import { type Evaluated, evaluateSafely, toItems } from '../../core/run/step-rules.ts';
import type { StepKey } from '../../db/attempt/attempt.ts';
import { AppError } from '../../errors/app-error.ts';
import type { RunContext } from './run-context.ts';
import { mentionsOf, type StepResults } from './step-results.ts';

/** Where the values of a run's expressions come from. */
export interface RunValues {
  readonly context: RunContext;
  readonly results: StepResults;
}

async function evaluateWith<Value>(
  { context, results }: RunValues,
  template: CompiledTemplate,
  evaluate: (scope: ExpressionScope) => Value,
): Promise<Evaluated<Value>> {
  const { steps, failure } = await results.scopeOf(context.run_id, mentionsOf(template));
  if (failure !== null) return { error: failure };
  return evaluateSafely(() => evaluate({ ...context.scope, steps }));
}

/** Evaluates a template outside of any item. */
export function evaluateInRun<Value>(
  values: RunValues,
  template: CompiledTemplate,
  evaluate: (template: CompiledTemplate, scope: ExpressionScope) => Value,
): Promise<Evaluated<Value>> {
  return evaluateWith(values, template, (scope) => evaluate(template, scope));
}

/** Reads the list of a step's `for_each`; null for a step without. */
export async function readItems(
  values: RunValues,
  { definition, items }: CompiledStep,
): Promise<Evaluated<readonly Json[] | null>> {
  if (items === null) return { value: null };
  return values.context.lists.of(definition.id, async () => {
    const list = await evaluateInRun(values, items, evaluateTemplate);
    if ('error' in list) return list;
    return toItems(list.value);
  });
}

/** The value of a template of a step. @param item 0 = of the step as a whole */
async function evaluateInStep(
  values: RunValues,
  { step, item }: { readonly step: CompiledStep; readonly item: number },
  template: CompiledTemplate,
): Promise<Evaluated<Json>> {
  if (item === 0) return evaluateInRun(values, template, evaluateTemplate);
  const items = await readItems(values, step);
  if ('error' in items) return items;
  const own = items.value?.[item - 1];
  if (own === undefined) {
    const message = `step ${step.definition.id} has no item ${item}`;
    return { error: { code: 'expression_unresolved', message } };
  }
  return evaluateWith(values, template, (scope) =>
    evaluateTemplate(template, { ...scope, item: own, index: item - 1 }),
  );
}

// One step of a run, or one item of it, and the input that the definition gives it.

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

type ResolvedInput = { readonly input: JsonObject } | { readonly error: Failure };

/** The input that a step's expressions give, or why they give none. @param item 0 = of the step as a whole */
export async function resolveInput(
  values: RunValues,
  step: CompiledStep,
  item: number,
): Promise<ResolvedInput> {
  const evaluated = await evaluateInStep(values, { step, item }, step.input);
  return 'error' in evaluated ? evaluated : { input: evaluated.value as JsonObject };
}
