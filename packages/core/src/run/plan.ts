/** The plan of a run, and how a definition becomes one: names, edges and rules, no values. */

import type { DecidedRoute, DispatchChoice } from '../contracts/decision.ts';
import type { PipelineDefinition, RunIf, StepDefinition } from '../contracts/pipeline.ts';
import { type CompiledDefinition, type CompiledStep, compileDefinition } from '../definition/compile.ts';
import { describeStep, resolveEscalation, resolveStepSettings } from '../definition/step-settings.ts';
import { createDispatchOf } from './dispatch.ts';

// The parts of a definition that the run machine needs: names, edges and rules, no values. It is the workflow's
// input, so it is small, plain JSON and never changes for a run. Absent fields have their defaults.

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
  readonly each?: { readonly max_parallel?: number; readonly tolerate?: number };
  /** It runs in rounds, which are its items: each is judged before the next one begins. */
  readonly repeats?: true;
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
  return {
    max_in_flight: maxInFlight,
    steps: compiled.steps.map((step) => planStep(definition, step, dispatchOf)),
    ...(reused.length === 0 ? {} : { reused: indexesOf(definition, reused) }),
    ...(skipped.length === 0 ? {} : { skipped: indexesOf(definition, skipped) }),
  };
}

function indexesOf({ steps }: PipelineDefinition, ids: readonly string[]): number[] {
  const known = new Set(ids);
  return steps.flatMap(({ id }, index) => (known.has(id) ? [index] : []));
}

function planStep(
  definition: PipelineDefinition,
  { definition: step, kind, dependencies }: CompiledStep,
  dispatchOf: (step: StepDefinition) => DispatchChoice | null,
): PlannedStep {
  const { run_if, for_each: each, repeat } = step;
  const isDecided = step.when !== undefined || each !== undefined || repeat !== undefined;
  return {
    id: step.id,
    capability: describeStep(step),
    dependencies,
    total_timeout_ms: resolveStepSettings(definition, step).totalTimeoutMs,
    ...(resolveEscalation(definition, step).enabled ? { escalates: true } : {}),
    ...(run_if === undefined || run_if === 'all_succeeded' ? {} : { run_if }),
    ...(isDecided ? { decides: true } : {}),
    ...(each === undefined ? {} : { each: pickLimits(each) }),
    ...(repeat === undefined ? {} : { repeats: true }),
    ...(step.on_error === 'continue' ? { continues: true } : {}),
    ...(kind === 'set' || dispatchOf(step)?.how === 'inline' ? { inline: true } : {}), // values need no queue
  };
}

function pickLimits({ max_parallel, tolerate }: NonNullable<CompiledStep['definition']['for_each']>) {
  return {
    ...(max_parallel === undefined ? {} : { max_parallel }),
    ...(tolerate === undefined ? {} : { tolerate }),
  };
}
