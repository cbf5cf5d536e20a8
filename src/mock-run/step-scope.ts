/** What expressions see of the steps of a local run, and a step's input; the rules are those of stored results. */
import type { Json } from '../contracts/primitives.ts';
import { ExpressionError } from '../core/expression/errors.ts';
import { evaluateTemplate } from '../core/expression/evaluate.ts';
import type { ExpressionScope, StepScope } from '../core/expression/evaluation.ts';
import { referencedSteps } from '../core/expression/references.ts';
import type { CompiledTemplate } from '../core/expression/template.ts';
import { fromNanoUsd } from '../core/money/nano-usd.ts';
import type { Evaluated } from '../core/run/decide-step.ts';
import type { RunJournal, UnitName, UnitRecord } from './run-journal.ts';

export type RunScope = Pick<ExpressionScope, 'job' | 'run'>;

export function scopeOfSteps(
  journal: RunJournal,
  ids: readonly string[],
): Readonly<Record<string, StepScope>> {
  const scope: Record<string, StepScope> = {};
  for (const id of ids) {
    const record = journal.find({ id, item: 0 });
    if (record !== undefined) scope[id] = toScope(journal, record);
  }
  return scope;
}

function toScope(journal: RunJournal, record: UnitRecord): StepScope {
  const items = record.items === undefined ? [] : [...journal.itemsOf(record.id).values()];
  const costNano = items.reduce((sum, item) => sum + item.costNano, record.costNano);
  return {
    status: record.state,
    cost_usd: fromNanoUsd(costNano),
    ...(record.error === undefined ? {} : { error: record.error as unknown as Json }),
    ...(record.state === 'succeeded' || record.state === 'reused'
      ? { output: journal.outputOf(record) }
      : {}),
  };
}

/** @param evaluate a condition or a value */
export function evaluateWith<Value>(
  template: CompiledTemplate,
  evaluate: (template: CompiledTemplate, scope: ExpressionScope) => Value,
  scope: ExpressionScope,
): Evaluated<Value> {
  try {
    return { value: evaluate(template, scope) };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return { error: { code: 'expression_unresolved', message: error.message } };
  }
}

export function evaluate(
  template: CompiledTemplate,
  scope: RunScope,
  journal: RunJournal,
  unit?: UnitName,
): Evaluated<Json> {
  return evaluateWith(template, evaluateTemplate, fullScope(template, scope, journal, unit));
}

export function fullScope(
  template: CompiledTemplate,
  scope: RunScope,
  journal: RunJournal,
  unit?: UnitName,
): ExpressionScope {
  return {
    ...scope,
    steps: scopeOfSteps(journal, referencedSteps(template)),
    ...(unit === undefined || unit.item === 0 ? {} : itemScope(journal, unit)),
  };
}

function itemScope(journal: RunJournal, { id, item }: UnitName) {
  return {
    item: journal.find({ id, item: 0 })?.items?.[item - 1] ?? null,
    index: item - 1,
  };
}
