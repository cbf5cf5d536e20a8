/**
 * Evaluates expressions before a run. An expression that reads the job, the run or steps with a certain end has its
 * value; an expression that reads anything else is unknown. It is the run's own evaluator over a scope that refuses to
 * answer, so `job.fast && steps.a.output.ok` is false when `job.fast` is, whatever `a` returns.
 */
import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { evaluateCondition } from '@capstan/core/expression/condition';
import { evaluateTemplate } from '@capstan/core/expression/evaluate';
import type { ExpressionScope, StepScope } from '@capstan/core/expression/evaluation';
import { ExpressionError } from '@capstan/core/expression/language';
import { Meter, workLimits } from '@capstan/core/expression/meter';
import type { CompiledTemplate } from '@capstan/core/expression/template';
import { evaluateNow, turnFor } from '../../parts/expression-work.ts';

/** It is certain to fail. */
interface WrongValue {
  readonly kind: 'wrong';
  readonly pointer: string;
  readonly message: string;
}

export type PartialValue<Value> =
  | { readonly kind: 'known'; readonly value: Value }
  | { readonly kind: 'unknown' }
  | WrongValue;

export function findingOf({ pointer, message }: WrongValue): Finding {
  return { severity: 'error', code: 'expression_unresolved', pointer, message };
}

/** An item of a step, or its first round: inputs of later rounds are unknown. */
export type Item =
  | { readonly item: Json; readonly index: number }
  | { readonly round: { readonly index: 0 } };

/** The work of a plan's evaluations. */
export class PlanWork {
  readonly #all = new Meter(workLimits.plan);
  #current: Meter | null = null;

  /** A value that is foreseen while another one reads it draws on the same part. */
  evaluate<Value>(evaluate: (meter: Meter) => Value): Value {
    if (this.#current !== null) return evaluate(this.#current);
    const meter = this.#all.part(workLimits.planned);
    this.#current = meter;
    try {
      return evaluateNow(meter, () => evaluate(meter));
    } finally {
      this.#current = null;
      this.#all.count(meter);
    }
  }

  /** Most is done: what is left is for the steps that were not looked at. */
  get isShort(): boolean {
    return this.#all.spent > this.#all.most / 2;
  }
}

/** The values that are certain before a run. */
export interface KnownFacts {
  readonly work: PlanWork;
  /** Null = unknown. */
  readonly job: JsonObject | null;
  readonly run: ExpressionScope['run'];
  readonly steps: ExpressionScope['steps'];
}

class NotYetKnown extends Error {
  override readonly name = 'NotYetKnown';
}

function require<Value>(value: Value | null | undefined): Value {
  if (value === null || value === undefined) throw new NotYetKnown();
  return value;
}

/** @param endOf the certain end of a step, by index; null = known only during the run */
export function foreseeSteps(
  ids: readonly string[],
  endOf: (index: number) => StepScope | null,
): KnownFacts['steps'] {
  const steps: Record<string, StepScope> = Object.create(null);
  for (const [index, id] of ids.entries()) {
    Object.defineProperty(steps, id, { enumerable: true, get: () => require(endOf(index)) });
  }
  return steps;
}

function scopeOf({ job, run, steps }: KnownFacts, item?: Item): ExpressionScope {
  return {
    run,
    steps,
    get job() {
      return require(job);
    },
    get item() {
      return require(item !== undefined && 'item' in item ? item : null).item;
    },
    get index() {
      return require(item !== undefined && 'item' in item ? item : null).index;
    },
    get round() {
      return require(item !== undefined && 'round' in item ? item.round : null);
    },
  };
}

/** @throws ExpressionError for too much work, as do the others */
export async function foreseeCondition(
  facts: KnownFacts,
  template: CompiledTemplate,
  item?: Item,
): Promise<PartialValue<boolean>> {
  const turn = turnFor();
  if (turn !== null) await turn;
  return evaluatePartially(facts, (meter) => evaluateCondition(template, scopeOf(facts, item), meter));
}

/** @param item of a `for_each`, or a round; absent = there is none, or it is unknown which */
export async function foreseeValue(
  facts: KnownFacts,
  template: CompiledTemplate,
  item?: Item,
): Promise<PartialValue<Json>> {
  const turn = turnFor();
  if (turn !== null) await turn;
  return evaluatePartially(facts, (meter) => evaluateTemplate(template, scopeOf(facts, item), meter));
}

/** For a value that another one reads. */
export function foreseeAtOnce(facts: KnownFacts, template: CompiledTemplate): PartialValue<Json> {
  return evaluatePartially(facts, (meter) => evaluateTemplate(template, scopeOf(facts), meter));
}

function evaluatePartially<Value>(
  { work }: KnownFacts,
  evaluate: (meter: Meter) => Value,
): PartialValue<Value> {
  try {
    return { kind: 'known', value: work.evaluate(evaluate) };
  } catch (error) {
    if (error instanceof NotYetKnown) return { kind: 'unknown' };
    if (!(error instanceof ExpressionError) || error.isTooLarge) throw error;
    return { kind: 'wrong', pointer: error.pointer, message: error.message };
  }
}
