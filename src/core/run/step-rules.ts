/**
 * Rules of steps beside their calls: whether a step happens and how often, by the values of its run; what the run that it
 * starts takes over, how deep such runs may be, and what the end of one means; how long a step waits. Every driver decides
 * by these rules: the engine over stored values, a mock run over those in memory, a plan over those that are certain.
 */
import { deepestSubRun, mostItems } from '../../contracts/bounds.ts';
import type { ErrorCode } from '../../contracts/errors.ts';
import type { PipelineDefinition, StepDefinition } from '../../contracts/pipeline.ts';
import type { Failure, Json, Priority } from '../../contracts/primitives.ts';
import type { CompiledDefinition } from '../definition/compile.ts';
import { capabilityOf } from '../definition/step-settings.ts';
import { parseDuration } from '../duration.ts';
import { describeValue } from '../expression/evaluation.ts';
import { ExpressionError } from '../expression/language.ts';
import { lowestCeiling } from '../routing/estimate.ts';
import type { StepVerdict } from './machine.ts';

/** A value of a run's expressions, or why there is none: a failure of the step, never of the process. */
export type Evaluated<Value> = { readonly value: Value } | { readonly error: Failure };

/** An expression that cannot be worked out is a failure of the step, never of the process. */
export function evaluateSafely<Value>(evaluate: () => Value): Evaluated<Value> {
  try {
    return { value: evaluate() };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return { error: { code: 'expression_unresolved', message: error.message } };
  }
}

/** The list of a `for_each`. */
export function toItems(value: Json): Evaluated<readonly Json[]> {
  if (!Array.isArray(value)) {
    const message = `a list is needed, not ${describeValue(value)}`;
    return { error: { code: 'expression_unresolved', message } };
  }
  if (value.length <= mostItems) return { value };
  const message = `${value.length} items; at most ${mostItems} are allowed`;
  return { error: { code: 'too_many_items', message } };
}

/** @param value of its `items` */
export function readList(value: Evaluated<Json>): Evaluated<readonly Json[]> {
  return 'error' in value ? value : toItems(value.value);
}

/** @param where the part of the step that could not be worked out */
export function refuseStep(
  where: 'when' | 'for_each.items',
  { code, message }: Failure,
): { readonly type: 'fail'; readonly error: Failure } {
  return { type: 'fail', error: { code, message: `${where}: ${message}` } };
}

/** @returns null when the step happens, as far as its `when` goes */
export function judgeCondition(happens: Evaluated<boolean>): StepVerdict | null {
  if ('error' in happens) return refuseStep('when', happens.error);
  return happens.value ? null : { type: 'skip' };
}

/** @param items of its `for_each`; null for a step without */
export function judgeItems(items: Evaluated<readonly Json[] | null>): StepVerdict {
  if ('error' in items) return refuseStep('for_each.items', items.error);
  return items.value === null ? { type: 'go' } : { type: 'go', items: items.value.length };
}

/** The steps whose outputs are the output of a run without `output`: no other step waits for them. */
export function listLastSteps({ steps }: Pick<CompiledDefinition, 'steps'>): string[] {
  const awaited = new Set(steps.flatMap(({ dependencies }) => dependencies));
  return steps.flatMap(({ definition }, index) => (awaited.has(index) ? [] : [definition.id]));
}

/** A run takes the priority that its caller asks for, else its definition's. */
export function priorityOfRun(
  { priority, defaults }: Pick<PipelineDefinition, 'priority' | 'defaults'>,
  asked: Priority | undefined,
): Priority {
  return asked ?? priority ?? defaults?.priority ?? 'standard';
}

/** The most that a run may cost, USD: what its caller allows, else its definition; null = no ceiling. */
export function ceilingOfRun(
  { budget_ceiling_usd }: Pick<PipelineDefinition, 'budget_ceiling_usd'>,
  asked: number | null | undefined,
): number | null {
  return asked === undefined ? (budget_ceiling_usd ?? null) : asked;
}

/** What `name@version` or `name@alias` names. */
export function splitReference(reference: string): readonly [pipeline: string, version: string] {
  const at = reference.indexOf('@');
  return [reference.slice(0, at), reference.slice(at + 1)];
}

export interface SubRunTerms {
  /** `name@version` or `name@alias` */
  readonly reference: string;
  readonly priority: Priority;
  /** The step's ceiling; null = none. */
  readonly ceilingUsd: number | null;
  /** Runs above the new one. */
  readonly depth: number;
}

/** What a step gives to the run that it starts. @param above the run of the step */
export function termsOfSubRun(
  { pipeline = '', priority, budget_ceiling_usd }: StepDefinition,
  above: { readonly priority: Priority; readonly depth: number },
): SubRunTerms {
  return {
    reference: pipeline,
    priority: priority ?? above.priority,
    ceilingUsd: budget_ceiling_usd ?? null,
    depth: above.depth + 1,
  };
}

/** The lower one of what the step allows and what the definition of its run allows; null = no ceiling. */
export function ceilingOfSubRun(
  { ceilingUsd }: Pick<SubRunTerms, 'ceilingUsd'>,
  { budget_ceiling_usd }: Pick<PipelineDefinition, 'budget_ceiling_usd'>,
): number | null {
  return lowestCeiling(ceilingUsd, budget_ceiling_usd ?? null);
}

/** @param depth runs above it @returns why a run may not start there; null = it may */
export function findDepthFault(depth: number): (Failure & { readonly code: ErrorCode }) | null {
  if (depth <= deepestSubRun) return null;
  const message = `pipelines in pipelines: ${depth} runs deep; allowed are ${deepestSubRun}`;
  return { code: 'definition_invalid', message };
}

interface UnsuccessfulRun {
  readonly run_id: string;
  /** `name@version`, or as the step writes it. */
  readonly pipeline: string;
  readonly state: string;
  /** Null = it was cancelled without one. */
  readonly error: Failure | null;
}

/** The step's failure when its run did not succeed. */
export function toSubRunFailure({ run_id, pipeline, state, error }: UnsuccessfulRun): Failure {
  const why = error === null ? '' : `: ${error.message}`;
  return {
    code: 'sub_run_failed' satisfies ErrorCode,
    message: `run ${run_id} of ${pipeline} ended as ${state}${why}`,
    details: { run_id, code: error?.code ?? 'run_cancelled' },
  };
}

/** What is wrong with a run that could not be started is the step's failure. */
export function toStartFailure(reference: string, { code, message }: Failure): Failure {
  return { code, message: `${reference}: ${message}` };
}

/** How long a step waits for its capability while no instance is registered, and why it fails after that. */
export function waitForCapabilityOf(step: StepDefinition): {
  readonly ms: number;
  readonly failure: Failure;
} {
  const allowed = step.wait_for_capability ?? '0s';
  const message = `no instance of ${capabilityOf(step)} is registered; wait_for_capability is ${allowed}`;
  return { ms: parseDuration(allowed), failure: { code: 'no_instance' satisfies ErrorCode, message } };
}

const defaultReviewTimeout = '24h';

/** How long a person may take to answer a step that asks. */
export function reviewTimeoutOf({ review }: Pick<StepDefinition, 'review'>): string {
  return review?.timeout ?? defaultReviewTimeout;
}
