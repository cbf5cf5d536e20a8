/** The values of a run against mocks: the scope of its expressions, which steps run, and its output. */
import type { Json } from '../contracts/primitives.ts';
import { evaluateCondition } from '../expression/condition.ts';
import { evaluateTemplate } from '../expression/evaluate.ts';
import type { ExpressionScope, StepScope } from '../expression/evaluation.ts';
import { countBytes } from '../expression/language.ts';
import { chooseReferences, referTo } from '../expression/large-outputs.ts';
import { type CompiledTemplate, referencedSteps } from '../expression/template.ts';
import { writeJson } from '../json/text.ts';
import { fromNanoUsd } from '../money/nano-usd.ts';
import type { AnswerVerdict } from '../run/drive.ts';
import type { StepVerdict } from '../run/machine.ts';
import { judgeRound } from '../run/repeat/judge-round.ts';
import type { RoundVerdict } from '../run/repeat/rounds.ts';
import {
  type Evaluated,
  evaluateSafely,
  judgeCondition,
  judgeItems,
  judgeWhenOfItems,
  listLastSteps,
  listSkipped,
  readList,
  toAnswerVerdict,
} from '../run/step-rules.ts';
import { type LocalRun, stepOf, type UnitName, type UnitRecord } from './local-run.ts';
import { costOf, findUnit, logEvent, moveUnit, outputOf, unitOf } from './run-journal.ts';

function scopeOfSteps(run: LocalRun, ids: readonly string[]): Readonly<Record<string, StepScope>> {
  const scope: Record<string, StepScope> = {};
  for (const id of ids) {
    const record = findUnit(run, { id, item: 0 });
    if (record !== undefined) scope[id] = toScope(run, record);
  }
  return scope;
}

function toScope(run: LocalRun, record: UnitRecord): StepScope {
  const { state, error } = record;
  return {
    status: state,
    cost_usd: fromNanoUsd(costOf(run, record)),
    ...(error === undefined ? {} : { error: error as unknown as Json }),
    ...(state === 'succeeded' || state === 'reused' ? { output: outputOf(run, record) } : {}),
  };
}

function scopeOf(run: LocalRun, template: CompiledTemplate, unit?: UnitName): ExpressionScope {
  return {
    ...run.scope,
    steps: scopeOfSteps(run, referencedSteps(template)),
    ...(unit === undefined || unit.item === 0 ? {} : scopeOfItem(run, unit)),
  };
}

/** The roots of an item, or of a round. */
function scopeOfItem(
  run: LocalRun,
  { id, item }: UnitName,
): Pick<ExpressionScope, 'item' | 'index' | 'round'> {
  const index = item - 1;
  if (stepOf(run, id).until === null) {
    return { item: findUnit(run, { id, item: 0 })?.items?.[index] ?? null, index };
  }
  const previous = index === 0 ? undefined : (findUnit(run, { id, item: index })?.output ?? null);
  return { round: previous === undefined ? { index } : { index, previous } };
}

/** Judges a round, and ends its step with the output of the last one. */
export function judgeLocalRound(run: LocalRun, name: UnitName): RoundVerdict {
  const { definition, until } = stepOf(run, name.id);
  const { repeat } = definition;
  if (repeat === undefined || until === null) throw new RangeError(`step ${name.id} has no rounds`);
  const whole = unitOf(run, { id: name.id, item: 0 });
  const { output = null } = unitOf(run, name);
  const scope = scopeOf(run, until, name);
  const holds = evaluateSafely(() =>
    evaluateCondition(until, { ...scope, round: { index: name.item - 1, ...scope.round, output } }),
  );
  const nowMs = run.world.time.now();
  const spentMs = nowMs - (whole.startedAt ?? nowMs);
  const verdict = judgeRound({ repeat, round: name.item, output, holds, spentMs, nowMs });
  if (verdict.type !== 'fail') {
    logEvent(run, { type: 'step.round', unit: name, data: { last: verdict.type === 'done' } });
  }
  if (verdict.type === 'again' && verdict.until !== null) {
    const wait = { awaiting: 'time', until: new Date(verdict.until).toISOString() };
    const next = unitOf(run, { id: name.id, item: name.item + 1 }); // it begins after the wait
    next.state = 'waiting';
    logEvent(run, { type: 'step.waiting', unit: next, data: wait });
  }
  if (verdict.type === 'done') {
    moveUnit(run, whole, { state: 'succeeded', output, data: { rounds: name.item } });
  }
  return verdict;
}

/** @param unit whose item the template may read; absent = the run's template */
export function evaluate(run: LocalRun, template: CompiledTemplate, unit?: UnitName): Evaluated<Json> {
  return evaluateSafely(() => evaluateTemplate(template, scopeOf(run, template, unit)));
}

/** Whether a step runs, and how often; its items are kept for their own inputs. */
export function decideStep(run: LocalRun, id: string): StepVerdict {
  const unit = { id, item: 0 };
  const { when, whenItem, items } = stepOf(run, id);
  const left =
    when === null ? null : judgeCondition(evaluateSafely(() => evaluateCondition(when, scopeOf(run, when))));
  const list = left !== null || items === null ? null : readList(evaluate(run, items));
  const repeats = left === null && stepOf(run, id).until !== null;
  const begins: StepVerdict = repeats ? { type: 'go', items: 1 } : judgeItems(list ?? { value: null });
  const verdict = judgeWhenOfItems(left ?? begins, (index) => {
    if (whenItem === null || list === null || 'error' in list) return { value: true };
    const own = { item: list.value[index] ?? null, index };
    return evaluateSafely(() => evaluateCondition(whenItem, { ...scopeOf(run, whenItem), ...own }));
  });
  if (verdict.type === 'skip') moveUnit(run, unit, { state: 'skipped', data: { reason: 'when' } });
  if (verdict.type === 'fail') moveUnit(run, unit, { state: 'failed', error: verdict.error });
  if (list !== null && 'value' in list) {
    moveUnit(run, unit, { state: 'running', data: { items: list.value.length } });
    unitOf(run, unit).items = list.value;
    for (const item of listSkipped(verdict))
      moveUnit(run, { id, item }, { state: 'skipped', data: { reason: 'when' } });
  }
  if (repeats) moveUnit(run, unit, { state: 'running', data: { items: 1 } });
  return verdict;
}

/** Whether the answer of an item counts for `enough`. */
export async function judgeAnswer(run: LocalRun, unit: UnitName): Promise<AnswerVerdict> {
  const { counts } = stepOf(run, unit.id);
  if (counts === null) return { counts: true };
  const scope = { ...scopeOf(run, counts, unit), output: findUnit(run, unit)?.output ?? null };
  return toAnswerVerdict(evaluateSafely(() => evaluateCondition(counts, scope)));
}

/**
 * The output of a run: the definition's `output`, else the outputs of the steps that no other step depends on, by id.
 */
export function evaluateOutput(run: LocalRun): Evaluated<Json> {
  const { output } = run.compiled;
  if (output !== null) {
    const end = evaluate(run, output);
    if ('value' in end) return end;
    return { error: { ...end.error, message: `output: ${end.error.message}` } };
  }
  const last = listLastSteps(run.compiled);
  const known = scopeOfSteps(run, last);
  const parts = last.map((name) => ({ name, bytes: countBytes(writeJson(known[name]?.output ?? null)) }));
  const referred = chooseReferences(parts);
  const outputs = parts.map(({ name, bytes }) => [
    name,
    referred.has(name)
      ? referTo({ bytes, run_id: run.scope.run.id, step: name })
      : (known[name]?.output ?? null),
  ]);
  return { value: Object.fromEntries(outputs) };
}
