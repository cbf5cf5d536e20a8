/**
 * The steps of a repeated run that keep their results. A result is kept if all of these hold: it was asked for; the
 * step and the values of job and run that it refers to are unchanged; all its dependencies are kept; the files it names
 * exist. For every other step, the first reason is reported. `run.id` and `run.attempt`, which differ in every
 * repetition, are not a reason.
 *
 * A step that was skipped, and would be skipped again, is kept as skipped: the steps behind it see the same end. A step
 * that happens again although nothing before it does keeps a part of its work: items with results, and child runs,
 * which continue where they failed (kept-items.ts). So does a step whose items are the output of such a step.
 */
import type { PipelineDefinition, StepDefinition } from '../contracts/pipeline.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import type { StepState } from '../contracts/run-step.ts';
import { type CompiledDefinition, type CompiledStep, listTemplates } from '../definition/compile.ts';
import { formatPath, type Segment } from '../expression/ast.ts';
import { findListedStep } from '../expression/large-outputs.ts';
import { referencedSteps, references } from '../expression/template.ts';
import { canonicalJson } from '../json/values.ts';
import { findRaceRegions, raceOf } from './plan.ts';
import { judgeRunIf } from './readiness.ts';

/** The values that expressions read and that may differ. */
export interface MentionedRoots {
  readonly job: JsonObject;
  readonly run: { readonly job_id: string; readonly version: string };
}

export interface Repetition {
  /** The definition of the new run. */
  readonly compiled: CompiledDefinition;
  /** The definition of the old run. */
  readonly before: PipelineDefinition;
  readonly roots: MentionedRoots;
  readonly rootsBefore: MentionedRoots;
  /** Steps that run again, with all their dependants. */
  readonly from: readonly string[] | null;
  /** Steps and items that succeeded keep their results; those that failed happen again, also if that was tolerated. */
  readonly onlyFailed: boolean;
  /** The states of the old run's steps, each as a whole; a step without one never began. */
  readonly states: ReadonlyMap<string, StepState>;
  /** By step with `for_each`, the number of items that failed. */
  readonly failedItems: ReadonlyMap<string, number>;
  /** Steps whose `when` is false in the new run, among those that were skipped. */
  readonly left: ReadonlySet<string>;
  /** By step, a file that its result names and that no longer exists. */
  readonly missing: ReadonlyMap<string, string>;
}

/**
 * How much of its former work a step keeps that happens again. all: the same items; equal: items with an equal input,
 * because the step or a value that it refers to is another one; listed: items whose place in the output of another
 * step, which is their list, is kept; none: nothing.
 */
export type KeptPart = 'all' | 'equal' | 'listed' | 'none';

export interface ExecutedStep {
  readonly id: string;
  readonly reason: string;
  readonly keeps: KeptPart;
}

export interface ReuseChoice {
  readonly reused: readonly string[];
  /** Steps that were skipped and are skipped again. */
  readonly skipped: readonly string[];
  readonly executed: readonly ExecutedStep[];
}

type StepChoice = 'reused' | 'skipped' | Omit<ExecutedStep, 'id'>;

export function chooseReused(repetition: Repetition): ReuseChoice {
  const { compiled, before } = repetition;
  const definitions = new Map(before.steps.map((step) => [step.id, shapeOf(step)]));
  const choices = new Map<number, StepChoice>();
  for (const index of inOrder(compiled)) {
    const step = compiled.steps[index] as CompiledStep;
    const changed = describeChange(repetition, step, definitions.get(step.definition.id));
    choices.set(index, chooseStep(repetition, step, { changed, choices }));
  }
  const ids = compiled.steps.map(({ definition }) => definition.id);
  for (const index of findLosers(compiled, choices)) choices.delete(index);
  return {
    reused: ids.filter((_, index) => choices.get(index) === 'reused'),
    skipped: ids.filter((_, index) => choices.get(index) === 'skipped'),
    executed: ids.flatMap((id, index) => {
      const choice = choices.get(index);
      return typeof choice === 'object' ? [{ id, ...choice }] : [];
    }),
  };
}

/** Steps that only races need which are decided from the beginning: the new run calls them off. */
function findLosers(compiled: CompiledDefinition, choices: ReadonlyMap<number, StepChoice>): number[] {
  return [...findRaceRegions(compiled)].flatMap(([join, region]) => {
    const { count = 0, of = [] } = raceOf(compiled, (compiled.steps[join] as CompiledStep).definition) ?? {};
    const good = of.filter((step) => choices.get(step) === 'reused').length;
    return good >= count ? region.filter((step) => typeof choices.get(step) === 'object') : [];
  });
}

/** Indexes of all steps, each after those that it depends on. */
export function inOrder({ steps }: CompiledDefinition): number[] {
  const unmet = steps.map(({ dependencies }) => dependencies.length);
  const successors: number[][] = steps.map(() => []);
  for (const [index, { dependencies }] of steps.entries()) {
    for (const dependency of dependencies) successors[dependency]?.push(index);
  }
  const order = unmet.flatMap((count, index) => (count === 0 ? [index] : []));
  for (let at = 0; at < order.length; at++) {
    for (const successor of successors[order[at] as number] ?? []) {
      unmet[successor] = (unmet[successor] ?? 0) - 1;
      if (unmet[successor] === 0) order.push(successor);
    }
  }
  return order;
}

interface StepFacts {
  /** How step or values differ; undefined: they do not. */
  readonly changed: string | undefined;
  /** Of all steps before it. */
  readonly choices: ReadonlyMap<number, StepChoice>;
}

function chooseStep(repetition: Repetition, step: CompiledStep, { changed, choices }: StepFacts): StepChoice {
  const { compiled, from, onlyFailed, states, left } = repetition;
  const { id, run_if } = step.definition;
  if (from?.includes(id) === true) return again('it was named in from');
  if (from === null && !onlyFailed) return again('all steps run again');
  const race = raceOf(compiled, step.definition);
  const all = step.dependencies.map((dependency) => choices.get(dependency));
  const isWon = race !== null && race.of.filter((one) => choices.get(one) === 'reused').length >= race.count;
  // The losers of a race that is won have no consequence.
  const ends = all.map((end, at) =>
    isWon && typeof end === 'object' && race.of.includes(step.dependencies[at] ?? -1) ? 'skipped' : end,
  );
  const executed = ends.findIndex((end) => typeof end === 'object');
  if (executed === -1 && states.get(id) === 'skipped') {
    const good = ends.filter((end) => end === 'reused').length;
    const isDue = isWon || judgeRunIf(run_if, { all: ends.length, unmet: 0, good, bad: 0 }) === 'ready';
    if (!isDue || left.has(id)) return 'skipped';
  }
  const own = explain(repetition, step.definition) ?? changed ?? describeMissing(repetition, id);
  if (executed !== -1) {
    const first = compiled.steps[step.dependencies[executed] as number]?.definition.id;
    const reason = own ?? `it depends on ${first}, which happens again`;
    return { reason, keeps: changed === undefined && isListed(step, compiled, ends) ? 'listed' : 'none' };
  }
  if (own === undefined) return 'reused';
  return { reason: own, keeps: changed === undefined ? 'all' : 'equal' };
}

/**
 * Whether its list is the output of a step that keeps a part of its work, and nothing else that happens again shapes
 * its items.
 * @param ends of its dependencies
 */
function isListed(
  { items, input, dependencies }: CompiledStep,
  { indexOf }: CompiledDefinition,
  ends: readonly (StepChoice | undefined)[],
): boolean {
  const listed = items === null ? null : findListedStep(items);
  if (listed === null) return false;
  const isExecuted = (id: string): boolean =>
    typeof ends[dependencies.indexOf(indexOf.get(id) ?? -1)] === 'object';
  const keepParts = ends.every((end) => typeof end !== 'object' || end.keeps !== 'none');
  return keepParts && isExecuted(listed) && !referencedSteps(input).some(isExecuted);
}

function again(reason: string): Omit<ExecutedStep, 'id'> {
  return { reason, keeps: 'none' };
}

/** Why the former end of a step is none to keep. */
function explain(
  { states, failedItems, onlyFailed }: Repetition,
  { id, for_each }: StepDefinition,
): string | undefined {
  const state = states.get(id);
  if (state === undefined) return 'it did not happen before';
  if (state !== 'succeeded' && state !== 'reused') return `it did not succeed before: ${state}`;
  const failed = for_each?.enough === undefined ? (failedItems.get(id) ?? 0) : 0;
  if (!onlyFailed || failed === 0) return undefined;
  return failed === 1 ? 'one of its items failed before' : `${failed} of its items failed before`;
}

function describeMissing({ missing }: Repetition, id: string): string | undefined {
  const gone = missing.get(id);
  return gone === undefined ? undefined : `${gone}, which its result names, is gone`;
}

/** @param before the shape of the old run's step; undefined: it had none */
function describeChange(
  { roots, rootsBefore }: Repetition,
  step: CompiledStep,
  before: string | undefined,
): string | undefined {
  if (before !== shapeOf(step.definition)) return 'its definition is another one';
  const different = findDifference(step, roots, rootsBefore);
  return different === undefined ? undefined : `${different} is another value`;
}

/** How a step tries: none of it is a part of the result of a step that succeeded. */
const waysOfTrying: ReadonlySet<string> = new Set([
  'description',
  'retry',
  'timeout',
  'total_timeout',
  'priority',
  'budget_ceiling_usd',
  'escalate',
  'dispatch',
  'cache',
  'on_error',
  'wait_for_capability',
  'allow_output',
  'optional',
] satisfies (keyof StepDefinition)[]);

/** The parts of a step that shape its result, as text. */
function shapeOf({ for_each, repeat, ...step }: StepDefinition): string {
  const parts = Object.entries(step).filter(([name]) => !waysOfTrying.has(name));
  const { items = null, enough = null } = for_each ?? {};
  const own = { items, enough, rounds: roundsOf(repeat) };
  return canonicalJson({ ...Object.fromEntries(parts), ...own } as Json);
}

/** The pause and the bounds of rounds are ways of trying, unless a bound gives the result. */
function roundsOf(repeat: StepDefinition['repeat']): Json {
  if (repeat?.on_exhausted !== 'continue') return repeat?.until ?? null;
  const { until, max, timeout = null } = repeat;
  return [until, max, timeout];
}

/** The first path that the step refers to and whose value differs. */
function findDifference(
  step: CompiledStep,
  roots: MentionedRoots,
  before: MentionedRoots,
): string | undefined {
  for (const { root, segments } of listTemplates(step).flatMap(references)) {
    if (root !== 'job' && root !== 'run') continue;
    const path = upToEach(segments);
    if (textAt(roots[root], path) !== textAt(before[root], path)) return formatPath(root, path);
  }
  return undefined;
}

type PathPart = string | number;

function upToEach(segments: readonly Segment[]): readonly PathPart[] {
  const at = segments.findIndex((segment) => typeof segment === 'object');
  return (at === -1 ? segments : segments.slice(0, at)) as readonly PathPart[];
}

function textAt(root: JsonObject, path: readonly PathPart[]): string | undefined {
  let value: Json = root;
  for (const place of path) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, place)) return undefined;
    value = (value as Readonly<Record<PathPart, Json>>)[place] as Json;
  }
  return canonicalJson(value);
}
