/** The plan of a run, and how a definition becomes one: names, edges and rules, no values. */

import type { DecidedRoute, DispatchChoice } from '../contracts/decision.ts';
import type { PipelineDefinition, RunIf, StepDefinition } from '../contracts/pipeline.ts';
import { type CompiledDefinition, type CompiledStep, compileDefinition } from '../definition/compile.ts';
import {
  describeStep,
  enoughOf,
  resolveEscalation,
  resolveStepSettings,
} from '../definition/step-settings.ts';
import { findRaceRegion, type Race, successorsOf } from '../graph/races.ts';
import { createDispatchOf } from './dispatch.ts';

// The parts of a definition that the run machine needs: names, edges and rules, no values. It is the workflow's
// input, so it is small, plain JSON and never changes for a run. Absent fields have their defaults.

export interface PlannedItems {
  readonly max_parallel?: number;
  readonly tolerate?: number;
  /** Answers that are enough. */
  readonly enough?: number;
  /** A condition decides which answers count. */
  readonly judges?: true;
}

export interface PlannedStep {
  readonly id: string;
  /** For people: the capability, or the other kind of the step. */
  readonly capability: string;
  /** Indexes of the steps that must be done before it. */
  readonly dependencies: readonly number[];
  /** Limit of the step with all its attempts. */
  readonly total_timeout_ms: number;
  /** A failure that a corrected input may cure starts a ladder instead of ending the step. */
  readonly escalates?: true;
  /** Default all_succeeded. */
  readonly run_if?: RunIf;
  /** Whether or how often it runs is evaluated once its dependencies are done. */
  readonly decides?: true;
  /** It runs once per item. */
  readonly each?: PlannedItems;
  /** It runs in rounds, which are its items: each is judged before the next one begins. */
  readonly repeats?: true;
  /** It starts when `count` of these steps, by index, have succeeded. */
  readonly race?: Race;
  /** It, or its items, may be called off while they run. */
  readonly is_callable_off?: true;
  /** The run continues when it fails. */
  readonly continues?: true;
  /** It may be executed without a queue. */
  readonly inline?: true;
}

export interface RunPlan {
  readonly steps: readonly PlannedStep[];
  /** Maximum number of steps and items in flight. */
  readonly max_in_flight: number;
  /** Indexes of steps with results from another run, ascending. */
  readonly reused?: readonly number[];
  /** Indexes of steps that were skipped in another run and would be skipped again, ascending. */
  readonly skipped?: readonly number[];
}

const maxInFlight = 200;

/**
 * @param reused ids of steps that have results already; `skipped`: of those that are skipped already
 * @param dispatch decisions for the steps that leave open whether they are queued
 */
export function planRun(
  definition: PipelineDefinition,
  {
    compiled = compileDefinition(definition),
    reused = [],
    skipped = [],
    dispatch = [],
  }: {
    readonly compiled?: CompiledDefinition;
    readonly reused?: readonly string[];
    readonly skipped?: readonly string[];
    readonly dispatch?: readonly DecidedRoute[];
  } = {},
): RunPlan {
  const dispatchOf = createDispatchOf(definition, dispatch);
  const racing = findRacingSteps(compiled);
  return {
    max_in_flight: maxInFlight,
    steps: compiled.steps.map((step, index) =>
      planStep(definition, step, {
        dispatchOf,
        raceOf: (own) => raceOf(compiled, own),
        isRacing: racing.has(index),
      }),
    ),
    ...(reused.length === 0 ? {} : { reused: indexesOf(definition, reused) }),
    ...(skipped.length === 0 ? {} : { skipped: indexesOf(definition, skipped) }),
  };
}

function indexesOf({ steps }: PipelineDefinition, ids: readonly string[]): number[] {
  const known = new Set(ids);
  return steps.flatMap(({ id }, index) => (known.has(id) ? [index] : []));
}

/** The race of a step with `first`; null: it waits for all its dependencies. */
export function raceOf(
  { indexOf }: Pick<CompiledDefinition, 'indexOf'>,
  { first, depends_on = [] }: StepDefinition,
): Race | null {
  if (first === undefined) return null;
  return { count: first, of: depends_on.flatMap((id) => indexOf.get(id) ?? []).sort((a, b) => a - b) };
}

/** The region of each race, by the index of its step. */
export function findRaceRegions(compiled: CompiledDefinition): ReadonlyMap<number, readonly number[]> {
  const { steps } = compiled;
  const races = steps.flatMap(({ definition }, index) => {
    const race = raceOf(compiled, definition);
    return race === null ? [] : [[index, race] as const];
  });
  const edges = {
    successors: successorsOf(steps),
    dependenciesOf: (step: number) => steps[step]?.dependencies ?? [],
  };
  return new Map(races.map(([index, race]) => [index, findRaceRegion(edges, index, race)]));
}

function findRacingSteps(compiled: CompiledDefinition): ReadonlySet<number> {
  return new Set([...findRaceRegions(compiled).values()].flat());
}

interface PlanFacts {
  readonly dispatchOf: (step: StepDefinition) => DispatchChoice | null;
  readonly raceOf: (step: StepDefinition) => Race | null;
  /** Only a race needs it. */
  readonly isRacing: boolean;
}

/**
 * A step that only a race needs may fail: its race decides what that means. Only its own `on_error` makes the run fail. A
 * step that may be called off is queued, because a batch cannot be.
 */
function planStep(
  definition: PipelineDefinition,
  { definition: step, kind, dependencies }: CompiledStep,
  { dispatchOf, raceOf, isRacing }: PlanFacts,
): PlannedStep {
  const { run_if, for_each: each, repeat } = step;
  const isDecided = step.when !== undefined || each !== undefined || repeat !== undefined;
  const race = raceOf(step);
  const isCallableOff = isRacing || each?.enough !== undefined;
  const isInline = kind === 'set' || (!isCallableOff && dispatchOf(step)?.how === 'inline'); // values need no queue
  return {
    id: step.id,
    capability: describeStep(step),
    dependencies,
    total_timeout_ms: resolveStepSettings(definition, step).totalTimeoutMs,
    ...(resolveEscalation(definition, step).enabled ? { escalates: true } : {}),
    ...(run_if === undefined || run_if === 'all_succeeded' ? {} : { run_if }),
    ...(race === null ? {} : { race }),
    ...(isCallableOff ? { is_callable_off: true } : {}),
    ...(isDecided ? { decides: true } : {}),
    ...(each === undefined ? {} : { each: pickLimits(each) }),
    ...(repeat === undefined ? {} : { repeats: true }),
    ...((step.on_error ?? (isRacing ? 'continue' : 'fail')) === 'continue' ? { continues: true } : {}),
    ...(isInline ? { inline: true } : {}),
  };
}

function pickLimits(each: NonNullable<StepDefinition['for_each']>): PlannedItems {
  const { max_parallel, tolerate } = each;
  const enough = enoughOf(each);
  return {
    ...(max_parallel === undefined ? {} : { max_parallel }),
    ...(tolerate === undefined ? {} : { tolerate }),
    ...(enough === null ? {} : { enough: enough.count }),
    ...(enough?.if === undefined ? {} : { judges: true }),
  };
}
