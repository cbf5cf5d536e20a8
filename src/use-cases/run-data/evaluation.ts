/**
 * Values of a run's expressions, including the inputs of its steps: from the job, the stored results and, for an item,
 * its list. An expression that cannot be evaluated is a failure of the step, never of the process.
 */
import type { ErrorCode } from '@capstan/core/contracts/errors';
import type { Failure, Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { CompiledStep } from '@capstan/core/definition/compile';
import { AppError } from '@capstan/core/errors/app-error';
import { evaluateCondition } from '@capstan/core/expression/condition';
import { evaluateTemplate } from '@capstan/core/expression/evaluate';
import type { ExpressionScope, RoundScope } from '@capstan/core/expression/evaluation';
import { findListedStep, mentionItem, mentionsOf } from '@capstan/core/expression/large-outputs';
import { Meter, workLimits } from '@capstan/core/expression/meter';
import type { CompiledTemplate } from '@capstan/core/expression/template';
import { toEventKey } from '@capstan/core/outside-events/rules';
import {
  type Evaluated,
  evaluateSafely,
  readList,
  toInput,
  toItems,
  toTitle,
} from '@capstan/core/run/step-rules';
import { findSecretPlaces, type SecretPlace } from '@capstan/core/secrets/secret-places';
import type { StepKey } from '../../db/attempt/attempt.ts';
import type { RunContext } from '../../parts/definitions/run-context.ts';
import type { StepResults } from '../../parts/definitions/step-results.ts';
import { evaluateNow, turnFor } from '../../parts/expression-work.ts';

/** The sources of the values of a run's expressions. */
export interface RunValues {
  readonly context: Pick<RunContext, 'run_id' | 'scope' | 'lists'>;
  readonly results: StepResults;
}

interface OwnFields extends Pick<ExpressionScope, 'item' | 'index' | 'output' | 'round'> {
  readonly meter?: Meter;
}

type EvaluateInRun<Value> = (template: CompiledTemplate, scope: ExpressionScope, meter: Meter) => Value;

/** Evaluates a template of a run. @param own the fields of an item, and the meter of several templates */
// biome-ignore lint/complexity/useMaxParams: every template needs the first three, few need own fields
export async function evaluateInRun<Value>(
  { context, results }: RunValues,
  template: CompiledTemplate,
  evaluate: EvaluateInRun<Value>,
  { meter = new Meter(workLimits.run), ...own }: OwnFields = {},
): Promise<Evaluated<Value>> {
  const { steps, failure } = await results.scopeOf(context.run_id, mentionsOf(template));
  if (failure !== null) return { error: failure };
  const turn = turnFor();
  if (turn !== null) await turn;
  const scope = { steps, ...context.scope, ...own };
  return evaluateNow(meter, () => evaluateSafely(() => evaluate(template, scope, meter)));
}

/** Reads the list of a step's `for_each` with all its items; null for a step without. */
export async function readWholeList(
  values: RunValues,
  { definition, items }: CompiledStep,
): Promise<Evaluated<readonly Json[] | null>> {
  if (items === null) return { value: null };
  return values.context.lists.of(definition.id, async () =>
    readList(await evaluateInRun(values, items, evaluateTemplate)),
  );
}

/** Reads the list of a step's `for_each`; null for a step without. @param wanted the item to read; default: any */
export async function readItems(
  values: RunValues,
  step: CompiledStep,
  wanted?: number,
): Promise<Evaluated<readonly Json[] | null>> {
  const list = await readWholeList(values, step);
  const { items } = step;
  return isTooLarge(list) && items !== null ? readListPart(values, { items, whole: list, wanted }) : list;
}

function isTooLarge(list: Evaluated<unknown>): list is { readonly error: Failure } {
  return 'error' in list && list.error.code === ('output_too_large' satisfies ErrorCode);
}

interface ListPart {
  readonly items: CompiledTemplate;
  /** Why the list cannot be read as a whole. */
  readonly whole: { readonly error: Failure };
  /** Default: no item. */
  readonly wanted: number | undefined;
}

/** O2 for items that are the output of a step: the list has its length, and one item. */
async function readListPart(
  { context, results }: RunValues,
  { items, whole, wanted }: ListPart,
): Promise<Evaluated<readonly Json[]>> {
  const stepId = findListedStep(items);
  if (stepId === null) return whole;
  const { steps, failure } = await results.scopeOf(context.run_id, [mentionItem(stepId, wanted)]);
  return failure === null ? toItems(steps[stepId]?.output ?? null) : { error: failure };
}

// One step of a run, or one item of it, and the input that the definition gives it.

export interface StepUnit {
  readonly context: RunContext;
  readonly step: CompiledStep;
  readonly key: StepKey;
}

/** @throws AppError `not_found` */
export function stepOf(context: RunContext, stepId: string): CompiledStep {
  const step = context.compiled.steps[context.compiled.indexOf.get(stepId) ?? -1];
  if (step === undefined) throw new AppError('not_found', `run ${context.run_id} has no step ${stepId}`);
  return step;
}

type ResolvedInput =
  | {
      /** With references in place of secrets. */
      readonly input: JsonObject;
      /** Where the definition names secrets. */
      readonly places: readonly SecretPlace[];
    }
  | { readonly error: Failure };

/** The input that a step's expressions give, or why they give none. @param item 0 = the step as a whole */
export async function resolveInput(
  values: RunValues,
  step: CompiledStep,
  item: number,
): Promise<ResolvedInput> {
  const own = item === 0 ? { value: {} } : await readOwn(values, { step, item });
  if ('error' in own) return own;
  const evaluated = await evaluateInRun(values, step.input, evaluateInput, own.value);
  if ('error' in evaluated) return evaluated;
  const input = toInput(evaluated.value.input);
  return 'error' in input ? input : { input: input.value, places: evaluated.value.places };
}

/** The title of a review step for a person. @param item 0 = the step as a whole */
export async function resolveTitle(
  values: RunValues,
  step: CompiledStep,
  item: number,
): Promise<Evaluated<string>> {
  const { title, definition } = step;
  if (title === null) return { value: definition.review?.title ?? '' };
  const own = item === 0 ? { value: {} } : await readOwn(values, { step, item });
  if ('error' in own) return own;
  return toTitle(await evaluateInRun(values, title, evaluateTemplate, own.value));
}

/** The key of the event that a step waits for. @param item 0 = the step as a whole */
export async function resolveEventKey(
  values: RunValues,
  step: CompiledStep,
  item: number,
): Promise<Evaluated<string>> {
  const { key, definition } = step;
  const written = definition.event?.key;
  if (written === undefined) return { value: '' };
  if (key === null) return toEventKey({ value: written });
  const own = item === 0 ? { value: {} } : await readOwn(values, { step, item });
  if ('error' in own) return own;
  return toEventKey(await evaluateInRun(values, key, evaluateTemplate, own.value));
}

function evaluateInput(template: CompiledTemplate, scope: ExpressionScope, meter: Meter) {
  const input = evaluateTemplate(template, scope, meter);
  return { input, places: findSecretPlaces(template, scope, meter) };
}

/** The roots of an item or a round. */
export async function readOwn(
  values: RunValues,
  { step, item }: { readonly step: CompiledStep; readonly item: number },
): Promise<Evaluated<Omit<OwnFields, 'meter'>>> {
  if (step.until !== null) return { value: { round: await readRound(values, { step, item }) } };
  const items = await readItems(values, step, item);
  if ('error' in items) return items;
  const own = items.value?.[item - 1];
  if (own !== undefined) return { value: { item: own, index: item - 1 } };
  const message = `step ${step.definition.id} has no item ${item}`;
  return { error: { code: 'expression_unresolved', message } };
}

/** A round with the output of the one before it. */
async function readRound(
  { context: { run_id }, results }: RunValues,
  { step, item }: { readonly step: CompiledStep; readonly item: number },
): Promise<RoundScope> {
  const index = item - 1;
  const previous = index === 0 ? undefined : await results.outputOf(run_id, step.definition.id, index);
  return previous === undefined ? { index } : { index, previous };
}

/** Whether a round with this output meets the condition of its step. */
export async function meetsCondition(
  values: RunValues,
  step: CompiledStep,
  { item, output }: { readonly item: number; readonly output: Json },
): Promise<Evaluated<boolean>> {
  if (step.until === null) return { value: true };
  const round = { ...(await readRound(values, { step, item })), output };
  return evaluateInRun(values, step.until, evaluateCondition, { round });
}
