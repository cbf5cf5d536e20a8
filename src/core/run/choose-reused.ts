/**
 * The steps of a repeated run that keep their results. A result is kept if all of these hold: it was asked for; the
 * step and the values of job and run that it refers to are unchanged; all its dependencies are kept; the files it names
 * exist. For every other step, the first reason is reported. `run.id` and `run.attempt`, which differ in every
 * repetition, are not a reason.
 */
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import type { StepState } from '../../contracts/run-step.ts';
import type { CompiledDefinition, CompiledStep } from '../definition/compile.ts';
import { formatPath, type Segment } from '../expression/ast.ts';
import { references } from '../expression/template.ts';
import { canonicalJson } from '../json/values.ts';

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
  /** Steps that succeeded keep their results. */
  readonly onlyFailed: boolean;
  /** The states of the old run's steps, each as a whole; a step without one never began. */
  readonly states: ReadonlyMap<string, StepState>;
  /** By step, a file that its result names and that no longer exists. */
  readonly missing: ReadonlyMap<string, string>;
}

export interface ReuseChoice {
  readonly reused: readonly string[];
  readonly executed: readonly { readonly id: string; readonly reason: string }[];
}

export function chooseReused(repetition: Repetition): ReuseChoice {
  const { compiled, before } = repetition;
  const definitions = new Map(before.steps.map((step) => [step.id, canonical(step)]));
  const reasons = new Map<number, string | null>();
  const reasonAt = (index: number): string | null => {
    const known = reasons.get(index);
    if (known !== undefined) return known;
    const reason = explain(repetition, compiled.steps[index] as CompiledStep, definitions);
    reasons.set(index, reason);
    return reason;
  };
  for (const index of inOrder(compiled)) {
    if (reasonAt(index) !== null) continue;
    const step = compiled.steps[index] as CompiledStep;
    const executed = step.dependencies.find((dependency) => reasonAt(dependency) !== null);
    if (executed !== undefined) {
      reasons.set(index, `it depends on ${compiled.steps[executed]?.definition.id}, which happens again`);
    }
  }
  const ids = compiled.steps.map(({ definition }) => definition.id);
  return {
    reused: ids.filter((_, index) => reasonAt(index) === null),
    executed: ids.flatMap((id, index) => {
      const reason = reasonAt(index);
      return reason === null ? [] : [{ id, reason }];
    }),
  };
}

/** Every step after those that it depends on. */
function inOrder({ steps }: CompiledDefinition): number[] {
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

function canonical(value: object): string {
  return canonicalJson(value as Json);
}

/** Why a step itself runs again; null: it keeps its result, if all its dependencies do. */
function explain(
  { from, onlyFailed, states, roots, rootsBefore, missing }: Repetition,
  step: CompiledStep,
  definitions: ReadonlyMap<string, string>,
): string | null {
  const { id } = step.definition;
  if (from?.includes(id) === true) return 'it was named in from';
  if (from === null && !onlyFailed) return 'every step happens again, unless from or only_failed is given';
  const state = states.get(id);
  if (state === undefined) return 'it did not happen before';
  if (state !== 'succeeded' && state !== 'reused') return `it did not succeed before: ${state}`;
  const before = definitions.get(id);
  if (before !== canonical(step.definition)) return 'its definition is another one';
  const different = findDifference(step, roots, rootsBefore);
  if (different !== undefined) return `${different} is another value`;
  const gone = missing.get(id);
  return gone === undefined ? null : `${gone}, which its result names, is gone`;
}

/** The first path that the step refers to and whose value differs. */
function findDifference(
  step: CompiledStep,
  roots: MentionedRoots,
  before: MentionedRoots,
): string | undefined {
  const templates = [step.when, step.items, step.input].filter((template) => template !== null);
  for (const { root, segments } of templates.flatMap(references)) {
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
