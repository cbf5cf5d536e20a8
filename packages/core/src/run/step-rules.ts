/**
 * Rules of steps besides their calls: whether a step runs and how often, by the values of its run; the terms, depth and
 * end of the run that it starts; how long it waits. All drivers use these rules: the engine on stored values, a mock
 * run on values in memory, a plan on certain values.
 */

import type { ErrorCode } from '../contracts/errors.ts';
import { deepestSubRun, mostItems } from '../contracts/limits.ts';
import type { PipelineDefinition, StepDefinition } from '../contracts/pipeline.ts';
import type { Failure, Json, JsonObject, Priority } from '../contracts/primitives.ts';
import type { CompiledDefinition } from '../definition/compile.ts';
import { capabilityOf } from '../definition/step-settings.ts';
import { formatDuration, parseDuration } from '../duration.ts';
import { describeValue } from '../expression/evaluation.ts';
import { ExpressionError } from '../expression/language.ts';
import { isPlainObject } from '../json/values.ts';
import { lowestCeiling } from '../routing/estimate.ts';
import type { AnswerVerdict } from './drive.ts';
import type { StepVerdict } from './machine.ts';
import { packStates, type UnitState, unpackStates } from './machine-state.ts';

/** A value of a run's expressions, or the reason for having none: a failure of the step, never of the process. */
export type Evaluated<Value> = { readonly value: Value } | { readonly error: Failure };

/** An expression that cannot be evaluated is a failure of the step, never of the process. */
export function evaluateSafely<Value>(evaluate: () => Value): Evaluated<Value> {
  try {
    return { value: evaluate() };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return { error: failureOf(error) };
  }
}

/** Work beyond a limit has its place in the message, since no value shows it. */
function failureOf({ message, pointer, isTooLarge }: ExpressionError): Failure {
  if (!isTooLarge) return { code: 'expression_unresolved', message };
  return { code: 'expression_limit', message: `${message} (at ${pointer})` };
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

/** The input of a step. @param value of its template */
export function toInput(value: Json): Evaluated<JsonObject> {
  if (isPlainObject(value)) return { value };
  const message = `input: an object is needed, not ${describeValue(value)}`;
  return { error: { code: 'expression_unresolved', message } };
}

/** @param value of its `items` */
export function readList(value: Evaluated<Json>): Evaluated<readonly Json[]> {
  return 'error' in value ? value : toItems(value.value);
}

const longestTitle = 1_000;

/** The title of a review step, cut to its greatest length. @param value of its template */
export function toTitle(value: Evaluated<Json>): Evaluated<string> {
  if ('error' in value) {
    return { error: { ...value.error, message: `review.title: ${value.error.message}` } };
  }
  const title = value.value;
  if (typeof title === 'object') {
    const message = `review.title: a string, number or boolean is needed, not ${describeValue(title)}`;
    return { error: { code: 'expression_unresolved', message } };
  }
  const text = String(title);
  const cut = text.length <= longestTitle ? text : `${text.slice(0, longestTitle - 1)}…`;
  return { value: cut.replaceAll(/\0|\p{Surrogate}/gu, '\ufffd') };
}

/** @param where the part of the step that could not be evaluated */
export function refuseStep(
  where: 'when' | 'for_each.items',
  { code, message }: Failure,
): { readonly type: 'fail'; readonly error: Failure } {
  return { type: 'fail', error: { code, message: `${where}: ${message}` } };
}

/** @returns null when the step runs, as far as its `when` decides */
export function judgeCondition(happens: Evaluated<boolean>): StepVerdict | null {
  if ('error' in happens) return refuseStep('when', happens.error);
  return happens.value ? null : { type: 'skip' };
}

/** @param items of its `for_each`; null for a step without one */
export function judgeItems(items: Evaluated<readonly Json[] | null>): StepVerdict {
  if ('error' in items) return refuseStep('for_each.items', items.error);
  return items.value === null ? { type: 'go' } : { type: 'go', items: items.value.length };
}

/**
 * Judges the condition of each item of a step that runs: the items for which it is false are skipped.
 * @param isWanted by the place of the item, from 0
 */
export function judgeWhenOfItems(
  verdict: StepVerdict,
  isWanted: (index: number) => Evaluated<boolean>,
): StepVerdict {
  if (verdict.type !== 'go' || verdict.items === undefined) return verdict;
  const states: UnitState[] = [];
  for (let index = 0; index < verdict.items; index++) {
    const happens = isWanted(index);
    if ('error' in happens) {
      const { code, message } = happens.error;
      return refuseStep('when', { code, message: `item ${index + 1}: ${message}` });
    }
    states.push(happens.value ? 'pending' : 'skipped');
  }
  return states.includes('skipped') ? { ...verdict, kept: packStates(states) } : verdict;
}

/** The numbers of the items that a verdict skips. */
export function listSkipped(verdict: StepVerdict): number[] {
  if (verdict.type !== 'go' || verdict.kept === undefined) return [];
  return unpackStates(verdict.kept).flatMap((state, index) => (state === 'skipped' ? [index + 1] : []));
}

/** An answer for which the condition has no value does not count. */
export function toAnswerVerdict(counts: Evaluated<boolean>): AnswerVerdict {
  if ('value' in counts) return { counts: counts.value };
  const { code, message } = counts.error;
  return { counts: false, error: { code, message: `enough.if: ${message}` } };
}

/** The steps that no other step depends on; their outputs are the output of a run without `output`. */
export function listLastSteps({ steps }: Pick<CompiledDefinition, 'steps'>): string[] {
  const awaited = new Set(steps.flatMap(({ dependencies }) => dependencies));
  return steps.flatMap(({ definition }, index) => (awaited.has(index) ? [] : [definition.id]));
}

/** A run's priority: its caller's, else its definition's. */
export function priorityOfRun(
  { priority, defaults }: Pick<PipelineDefinition, 'priority' | 'defaults'>,
  asked: Priority | undefined,
): Priority {
  return asked ?? priority ?? defaults?.priority ?? 'standard';
}

/** The budget of a run, USD: its caller's, else its definition's; null = no ceiling. */
export function ceilingOfRun(
  { budget_ceiling_usd }: Pick<PipelineDefinition, 'budget_ceiling_usd'>,
  asked: number | null | undefined,
): number | null {
  return asked === undefined ? (budget_ceiling_usd ?? null) : asked;
}

/** The parts of `name@version` or `name@alias`. */
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

/** The terms of a run that a step starts. @param above the run of the step */
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

/** The lower of the ceilings of the step and of its run's definition; null = no ceiling. */
export function ceilingOfSubRun(
  { ceilingUsd }: Pick<SubRunTerms, 'ceilingUsd'>,
  { budget_ceiling_usd }: Pick<PipelineDefinition, 'budget_ceiling_usd'>,
): number | null {
  return lowestCeiling(ceilingUsd, budget_ceiling_usd ?? null);
}

/** @param depth runs above it @returns why a run may not start at this depth; null = it may */
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

/** The reason why a run could not be started, as the step's failure. */
export function toStartFailure(reference: string, { code, message }: Failure): Failure {
  return { code, message: `${reference}: ${message}` };
}

/** How long a step waits for its capability while no instance is registered, and its failure after that. */
export function waitForCapabilityOf(step: StepDefinition): {
  readonly ms: number;
  readonly failure: Failure;
} {
  const allowed = step.wait_for_capability ?? '0s';
  const message = `no instance of ${capabilityOf(step)} is registered; wait_for_capability is ${allowed}`;
  return { ms: parseDuration(allowed), failure: { code: 'no_instance' satisfies ErrorCode, message } };
}

interface WaitedInLine {
  readonly capability: string;
  readonly waitedMs: number;
  /** Calls before it in line. */
  readonly ahead: number;
  /** Of the instances that could take the call. */
  readonly endpoints: readonly string[];
}

const shownEndpoints = 10;

/** The failure of a step whose call has found no free slot. @param allowed its `queue_timeout` */
export function toQueueTimeout(
  { capability, waitedMs, ahead, endpoints }: WaitedInLine,
  allowed: string,
): Failure {
  const waited = `waited ${formatDuration(waitedMs)} for a free slot of ${capability}`;
  const others = `behind ${ahead} other ${ahead === 1 ? 'call' : 'calls'}`;
  const where = endpoints.length === 0 ? 'no instance' : endpoints.slice(0, shownEndpoints).join(', ');
  return {
    code: 'queue_timeout' satisfies ErrorCode,
    message: `${waited}, ${others}, on ${where}; queue_timeout is ${allowed}`,
    details: { waited_ms: Math.round(waitedMs), ahead, instances: [...endpoints] },
  };
}

const defaultReviewTimeout = '24h';

/** The time for a person to answer a review step. */
export function reviewTimeoutOf({ review }: Pick<StepDefinition, 'review'>): string {
  return review?.timeout ?? defaultReviewTimeout;
}
