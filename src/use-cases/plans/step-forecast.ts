/**
 * Forecasts a step with all its items. Known inputs are checked, so that the plan shows an input that would be refused.
 */
import { mostItems } from '@capstan/core/contracts/limits';
import type { Repeat } from '@capstan/core/contracts/pipeline';
import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import type { Json } from '@capstan/core/contracts/primitives';
import type { CompiledStep } from '@capstan/core/definition/compile';
import { enoughOf, resolveCache } from '@capstan/core/definition/step-settings';
import { references } from '@capstan/core/expression/template';
import { foreseeTime, type UnitGroup } from '@capstan/core/graph/foreseen-time';
import { toInput, toItems } from '@capstan/core/run/step-rules';
import {
  addCosts,
  type CostRange,
  multiplyCost,
  nobody,
  noCost,
  type PlanContext,
  type RunTask,
  type StepForecast,
  type UnitForecast,
} from './forecast.ts';
import {
  findingOf,
  foreseeCondition,
  foreseeValue,
  type Item,
  type KnownFacts,
  type PartialValue,
} from './partial-evaluation.ts';
import { forecastUnit } from './unit-forecast.ts';

export interface StepTask {
  readonly step: CompiledStep;
  /** JSON Pointer of the step in its definition. */
  readonly pointer: string;
  readonly facts: KnownFacts;
  /** Items that run in parallel. */
  readonly maxParallel: number;
}

export async function forecastStep(
  context: PlanContext,
  run: RunTask,
  task: StepTask,
): Promise<StepForecast> {
  const { step, pointer, facts } = task;
  if (step.definition.repeat !== undefined) return forecastRounds(context, run, task, step.definition.repeat);
  if (step.items === null) return toStepForecast(await forecastOne(context, run, task));
  const list = readList(await foreseeValue(facts, step.items), `${pointer}/for_each/items`);
  if ('value' in list) return forecastItems(context, run, { ...task, list: list.value });
  const one = await forecastOne(context, run, task);
  return {
    ...toStepForecast(one),
    items: null,
    cost: { ...one.cost, least: 0n, limit: multiplyCost(one.cost, mostItems).limit },
    findings: [list, ...one.findings],
  };
}

/** At least one round, at most `max`: the number is known only during the run. */
// biome-ignore lint/complexity/useMaxParams: every forecast needs the first three
async function forecastRounds(
  context: PlanContext,
  run: RunTask,
  task: StepTask,
  { max, pause }: Repeat,
): Promise<StepForecast> {
  const first = await forecastOne(context, run, { ...task, item: { round: { index: 0 } } });
  const isVaried = references(task.step.input).some(({ root }) => root === 'round');
  const other = isVaried && max > 1 ? await forecastOne(context, run, task) : first;
  const rest = multiplyCost(other.cost, max - 1);
  const pauses = pause === undefined || max === 1 ? '' : `, with pauses of ${pause} between them`;
  const message = `the step has 1 to ${max} rounds${pauses}: the least and the expected cost are of one round, the worst is of ${max}; the time is of one round`;
  const finding: Finding = {
    severity: 'note',
    code: 'rounds_unknown',
    pointer: `${task.pointer}/repeat`,
    message,
  };
  return {
    ...toStepForecast(first),
    rounds: max,
    cost: { ...first.cost, worst: first.cost.worst + rest.worst, limit: first.cost.limit + rest.limit },
    findings: [finding, ...first.findings],
  };
}

function readList(items: PartialValue<Json>, pointer: string): { readonly value: readonly Json[] } | Finding {
  if (items.kind === 'unknown') {
    const message = 'the number of items depends on what earlier steps answer; cost and time are per item';
    return { severity: 'note', code: 'items_unknown', pointer, message };
  }
  if (items.kind === 'wrong') return { ...findingOf(items), pointer };
  const list = toItems(items.value);
  return 'error' in list ? { severity: 'error', pointer, ...list.error } : list;
}

async function forecastOne(
  context: PlanContext,
  run: RunTask,
  { item, ...task }: StepTask & { readonly item?: Item },
): Promise<UnitForecast> {
  const { whenItem } = task.step;
  const wanted = whenItem === null ? null : await foreseeCondition(task.facts, whenItem, item);
  if (wanted?.kind === 'known' && !wanted.value)
    return { ...nobody, reason: 'it is skipped: its condition is false' };
  const unit = await forecastWanted(context, run, { ...task, ...(item === undefined ? {} : { item }) });
  const findings = wanted?.kind === 'wrong' ? [findingOf(wanted), ...unit.findings] : unit.findings;
  return wanted === null || wanted.kind === 'known'
    ? unit
    : { ...unit, findings, cost: { ...unit.cost, least: 0n } };
}

async function forecastWanted(
  context: PlanContext,
  run: RunTask,
  { item, ...task }: StepTask & { readonly item?: Item },
): Promise<UnitForecast> {
  const read = await foreseeValue(task.facts, task.step.input, item);
  const known = read.kind === 'known' ? toInput(read.value) : null;
  const input = known !== null && 'value' in known ? known.value : null;
  const unit = await forecastUnit(context, run, { ...task, input });
  const findings = read.kind === 'wrong' ? [findingOf(read), ...unit.findings] : unit.findings;
  if (known === null || 'value' in known) return { ...unit, findings };
  const fault: Finding = { severity: 'error', pointer: `${task.pointer}/input`, ...known.error };
  return { ...unit, findings: [fault, ...findings] };
}

function dependsOnItem({ input, whenItem }: CompiledStep): boolean {
  if (whenItem !== null) return true;
  return references(input).some(({ root }) => root === 'item' || root === 'index');
}

function toStepForecast({ places, within, load: _, ...unit }: UnitForecast): StepForecast {
  return { ...unit, groups: [groupOf({ ...unit, places, within }, 1)] };
}

function groupOf({ durationMs, places, within }: UnitForecast, count: number): UnitGroup {
  return within === undefined ? { count, durationMs, places } : { count, durationMs, places, within };
}

/** Equal units that follow one another are one group. */
function groupUnits(units: readonly UnitForecast[]): UnitGroup[] {
  const groups: UnitGroup[] = [];
  for (const unit of units) {
    const last = groups.at(-1);
    const isLike =
      last?.places === unit.places && last.within === unit.within && last.durationMs === unit.durationMs;
    if (isLike) groups[groups.length - 1] = { ...last, count: last.count + 1 };
    else groups.push(groupOf(unit, 1));
  }
  return groups;
}

/** How long the step takes on slots that nothing else uses. */
function timeAlone(groups: readonly UnitGroup[], maxParallel: number): number {
  const unused = groups.map((group) => ({
    ...group,
    places: group.places.map((place) => ({ ...place, ahead: 0 })),
  }));
  return foreseeTime([{ id: '', dependencies: [], groups: unused, maxParallel }]).durationMs;
}

async function forecastItems(
  context: PlanContext,
  run: RunTask,
  { list, ...task }: StepTask & { readonly list: readonly Json[] },
): Promise<StepForecast> {
  const wanted = dependsOnItem(task.step) ? list.length : Math.min(1, list.length);
  const looked = Math.min(wanted, context.inputBudget.left);
  context.inputBudget.left -= looked;
  if (looked < wanted) context.inputBudget.isShort = true;
  const units: UnitForecast[] = [];
  for (let index = 0; index < looked; index++) {
    if (index > 0 && task.facts.work.isShort) {
      context.inputBudget.isShort = true;
      break;
    }
    units.push(await forecastOne(context, run, { ...task, item: { item: list[index] ?? null, index } }));
  }
  const rest = list.length - units.length;
  const other = rest === 0 ? null : await forecastOther(context, run, { ...task, known: units[0] });
  const all = other === null ? units : [...units, other];
  const every = [...groupUnits(units), ...(other === null ? [] : [groupOf(other, rest)])];
  const enough = countEnough(task.step, list.length);
  const groups = takeFastest(every, enough);
  const atOnce = leastOf(all.map((unit) => unit.atOnce));
  const { chosen = null, candidates = [], reason = 'the list is empty' } = all[0] ?? {};
  const cached = units.reduce((sum, unit) => sum + (unit.cached ?? 0), rest * (other?.cached ?? 0));
  return {
    chosen,
    candidates,
    reason,
    items: list.length,
    ...(cached === 0 ? {} : { cached }),
    cost: sumCosts(units, { other, rest, enough }),
    groups,
    durationMs: timeAlone(groups, task.maxParallel),
    atOnce,
    findings: [...mergeFindings(units), ...findWaits(task, atOnce, every)],
  };
}

function countEnough({ definition: { for_each } }: CompiledStep, all: number): number {
  return (for_each === undefined ? null : enoughOf(for_each))?.count ?? all;
}

interface OtherItems {
  readonly other: UnitForecast | null;
  /** The number of the others. */
  readonly rest: number;
  readonly enough: number;
}

/** What is expected for loads of keys that the items before have loaded. */
function repeatedLoads(units: readonly UnitForecast[], { other, rest }: OtherItems): bigint {
  const loaded = new Set<string>();
  let sum = 0n;
  for (const { load } of units) {
    if (load === undefined) continue;
    if (loaded.has(load.key)) sum += load.nano;
    loaded.add(load.key);
  }
  const { key = '', nano = 0n } = other?.load ?? {};
  return sum + nano * BigInt(loaded.has(key) ? rest : Math.max(0, rest - 1));
}

/** The least is that of the cheapest items, as far as they are enough. */
function sumCosts(units: readonly UnitForecast[], others: OtherItems): CostRange {
  const { other, rest, enough } = others;
  const all = units.reduce(
    (total, { cost }) => addCosts(total, cost),
    multiplyCost(other?.cost ?? noCost, rest),
  );
  const sum = { ...all, expected: all.expected - repeatedLoads(units, others) };
  if (enough >= units.length + rest) return sum;
  const leasts = [...units, ...Array.from({ length: rest }, () => other)].map(
    (unit) => unit?.cost.least ?? 0n,
  );
  const cheapest = leasts.sort((a, b) => (a < b ? -1 : Number(a > b))).slice(0, enough);
  return { ...sum, least: cheapest.reduce((total, one) => total + one, 0n) };
}

/** The others are cancelled. */
function takeFastest(groups: readonly UnitGroup[], enough: number): readonly UnitGroup[] {
  if (enough >= groups.reduce((sum, { count }) => sum + count, 0)) return groups;
  let left = enough;
  return [...groups]
    .sort((a, b) => a.durationMs - b.durationMs)
    .flatMap((group) => {
      const count = Math.min(group.count, left);
      left -= count;
      return count === 0 ? [] : [{ ...group, count }];
    });
}

function leastOf(counts: readonly (number | null)[]): number | null {
  const known = counts.filter((count) => count !== null);
  return known.length === 0 ? null : Math.min(...known);
}

/** Calls that could run in parallel, but for money. */
function findWaits(
  { pointer, maxParallel }: StepTask,
  atOnce: number | null,
  groups: readonly UnitGroup[],
): Finding[] {
  const calls = groups.reduce((sum, { count, places }) => sum + (places.length === 0 ? 0 : count), 0);
  const wanted = Math.min(calls, maxParallel);
  if (atOnce === null || atOnce === 0 || atOnce >= wanted) return [];
  const message = `the money of the run and of the day admits ${atOnce} of ${wanted} parallel calls at once; the others wait for it`;
  return [{ severity: 'note', code: 'money_waits', pointer, message }];
}

/** Items that were not examined count like the first one; equal ones may take its result. */
async function forecastOther(
  context: PlanContext,
  run: RunTask,
  { known, ...task }: StepTask & { readonly known: UnitForecast | undefined },
): Promise<UnitForecast> {
  const isEqual = !dependsOnItem(task.step) && resolveCache(run.definition, task.step.definition) !== null;
  return known === undefined || isEqual ? forecastOne(context, run, task) : known;
}

/** Lists each finding once, with the first item that it is about. */
function mergeFindings(units: readonly UnitForecast[]): Finding[] {
  const seen = new Map<string, { readonly finding: Finding; readonly first: number; count: number }>();
  for (const [index, { findings }] of units.entries()) {
    for (const finding of findings) {
      const key = JSON.stringify([finding.code, finding.pointer, finding.message]);
      const known = seen.get(key);
      if (known === undefined) seen.set(key, { finding, first: index + 1, count: 1 });
      else known.count++;
    }
  }
  return [...seen.values()].map(({ finding, first, count }) => ({
    ...finding,
    message: `${count === 1 ? `item ${first}` : `${count} items, the first is ${first}`}: ${finding.message}`,
  }));
}
