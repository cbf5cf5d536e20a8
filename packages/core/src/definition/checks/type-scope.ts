/**
 * The types of what expressions may refer to, for each place of a definition.
 *
 * Also finds the steps that may end without an output although the run continues, with the reason, and the steps that
 * start only after all their dependencies have one.
 */

import type { PipelineDefinition, StepDefinition } from '../../contracts/pipeline.ts';
import type { Path } from '../../expression/ast.ts';
import { runFields, scheduledFields } from '../../expression/language.ts';
import type { Graph } from '../../graph/dag.ts';
import { findRaceRegion, successorsOf } from '../../graph/races.ts';
import { typeOfFields } from '../../schema-types/combine-types.ts';
import type { PathStart } from '../../schema-types/path-type.ts';
import {
  absent,
  anyType,
  aType,
  createObjectType,
  enumType,
  integerType,
  kinds,
  numberType,
  stringType,
  type ValueType,
} from '../../schema-types/value-type.ts';
import { type DefinitionTemplates, isWhenOfItem } from '../compile.ts';

export interface TypeScope {
  readonly job: ValueType;
  /** Outputs of the steps checked so far. */
  readonly outputs: ReadonlyMap<string, ValueType>;
  /** Why the output of a step may be missing here; undefined = it is present. */
  readonly whyMissing: (stepId: string) => string | undefined;
  /** Null outside a step with `for_each`. */
  readonly item: ValueType | null;
  /** The type of a round's output; null outside the input and the condition of a step with `repeat`. */
  readonly round: { readonly output: ValueType } | null;
  /** The output of an item, where it is judged. */
  readonly answer?: ValueType;
}

/** Null for a path that has its own finding already. */
export function startOf(path: Path, scope: TypeScope): PathStart | null {
  switch (path.root) {
    case 'job':
      return { type: scope.job, missing: 'no', length: 0 };
    case 'run':
      return startOfRun(path);
    case 'item':
      return scope.item === null ? null : { type: scope.item, missing: 'no', length: 0 };
    case 'index':
      return scope.item === null ? null : { type: integerType, missing: 'no', length: 0 };
    case 'round':
      return scope.round === null ? null : startOfRound(path, scope.round.output);
    case 'output':
      return scope.answer === undefined ? null : { type: scope.answer, missing: 'no', length: 0 };
    case 'secrets':
      return path.segments.length === 1 ? { type: stringType, missing: 'no', length: 1 } : null;
    case 'steps':
      return startOfStep(path, scope);
    default:
      return null;
  }
}

function startOfRun({ segments: [name] }: Path): PathStart | null {
  if (!runFields.some((field) => field === name)) return null;
  if (!scheduledFields.has(String(name))) return { type: runType, missing: 'no', length: 0 };
  return {
    type: stringType,
    missing: 'maybe',
    length: 1,
    reason: 'only a run that a schedule starts has one',
  };
}

function startOfRound({ segments: [field] }: Path, output: ValueType): PathStart | null {
  switch (field) {
    case 'index':
      return { type: integerType, missing: 'no', length: 1 };
    case 'previous':
      return { type: output, missing: 'maybe', length: 1, reason: 'the first round has none' };
    case 'output':
      return { type: output, missing: 'no', length: 1 };
    default:
      return null;
  }
}

function startOfStep({ segments: [id, field] }: Path, scope: TypeScope): PathStart | null {
  const output = typeof id === 'string' ? scope.outputs.get(id) : undefined;
  if (typeof id !== 'string' || output === undefined) return null;
  switch (field) {
    case 'output': {
      const reason = scope.whyMissing(id);
      return { type: output, missing: reason === undefined ? 'no' : 'maybe', length: 2, reason };
    }
    case 'status':
      return { type: statusType, missing: 'no', length: 2 };
    case 'cost_usd':
      return { type: numberType, missing: 'no', length: 2 };
    case 'error':
      return { type: errorType, missing: 'maybe', length: 2, reason: 'only a step that failed has one' };
    default:
      return null;
  }
}

const runType = typeOfFields(
  new Map(runFields.map((field) => [field, () => (field === 'attempt' ? integerType : stringType)])),
);

/** The end states of a step that another step may read. */
const statusType = enumType(['succeeded', 'reused', 'failed', 'unknown', 'skipped', 'cancelled']);

const errorType: ValueType = aType({
  kinds: kinds.object,
  object: createObjectType({
    names: () => ['code', 'message', 'details'],
    required: new Set(['code', 'message']),
    named: (name) =>
      name === 'details' ? { type: anyType, presence: 'maybe' } : { type: stringType, presence: 'certain' },
    other: () => absent,
    isDescribed: true,
  }),
});

interface Lack {
  readonly reason: string;
  /** Caused by the step's own settings, not by another step. */
  readonly isOwn: boolean;
}

/** By step index: why the step may have no output; undefined = it has one, or the run fails. */
export type StepLacks = readonly (Lack | undefined)[];

export function findLacks(
  { steps }: PipelineDefinition,
  templates: DefinitionTemplates,
  { order, predecessors }: Graph,
): StepLacks {
  const lacks: (Lack | undefined)[] = steps.map(() => undefined);
  const racing = findRacing(steps, predecessors);
  for (const index of order) {
    const step = steps[index];
    if (step === undefined) continue;
    const before = predecessors[index] ?? [];
    const texts = templates.steps[index];
    const isSkippedByItem = texts !== undefined && isWhenOfItem(texts);
    const whole = isSkippedByItem ? { ...step, when: undefined } : step;
    lacks[index] = whySkipped(whole, before, lacks) ?? whyFailed(step, racing.has(index));
  }
  return lacks;
}

function whySkipped(step: StepDefinition, before: readonly number[], lacks: StepLacks): Lack | undefined {
  const { id, when, run_if = 'all_succeeded', first, optional, review } = step;
  const reason = `${id} may be skipped`;
  if (when !== undefined || optional === true || review?.on_timeout === 'skip')
    return { reason, isOwn: true };
  const lacking = before.filter((index) => lacks[index] !== undefined);
  const mayBeSkipped =
    run_if === 'any_failed' ||
    (run_if === 'all_succeeded' && first === undefined && lacking.length > 0) ||
    (run_if === 'any_succeeded' && lacking.length === before.length);
  return mayBeSkipped ? { reason, isOwn: run_if === 'any_failed' } : undefined;
}

/** The steps that a race may call off. */
function findRacing(
  steps: PipelineDefinition['steps'],
  predecessors: Graph['predecessors'],
): ReadonlySet<number> {
  if (steps.every(({ first }) => first === undefined)) return new Set();
  const successors = successorsOf(predecessors.map((dependencies) => ({ dependencies })));
  const dependenciesOf = (step: number) => predecessors[step] ?? [];
  const regions = steps.map(({ first: count, depends_on = [] }, join) => {
    if (count === undefined) return [];
    const of = dependenciesOf(join).filter((step) => depends_on.includes(steps[step]?.id ?? ''));
    return findRaceRegion({ successors, dependenciesOf }, join, { count, of });
  });
  return new Set(regions.flat());
}

function whyFailed({ id, on_error }: StepDefinition, isRacing: boolean): Lack | undefined {
  if (isRacing) return { reason: `${id} may be called off`, isOwn: false };
  return on_error === 'continue' ? { reason: `${id} may fail`, isOwn: true } : undefined;
}

/** Whether a step that starts has the output of every step it depends on. */
export function needsAll({ run_if, first }: StepDefinition, dependencies: number): boolean {
  if (first !== undefined && first < dependencies) return false;
  return (
    run_if === undefined || run_if === 'all_succeeded' || (run_if === 'any_succeeded' && dependencies === 1)
  );
}
