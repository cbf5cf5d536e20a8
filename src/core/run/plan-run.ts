/** From a definition to the plan of a run of it: names, edges and rules, no values. */
import type { DecidedRoute, DispatchChoice } from '../../contracts/dispatch.ts';
import type { PipelineDefinition, StepDefinition } from '../../contracts/pipeline.ts';
import {
  type CompiledDefinition,
  type CompiledStep,
  compileDefinition,
} from '../definition/compile/compile-definition.ts';
import { resolveEscalation } from '../definition/compile/escalation-settings.ts';
import { resolveStepSettings } from '../definition/compile/step-settings.ts';
import { describeStep } from '../definition/step-kind.ts';
import type { PlannedStep, RunPlan } from './plan.ts';
import { createDispatchOf } from './step-dispatch.ts';

const maxInFlight = 200;

/**
 * @param reused ids of steps whose results are there already
 * @param dispatch what was decided for the steps that leave open whether they are queued
 */
export function planRun(
  definition: PipelineDefinition,
  {
    compiled = compileDefinition(definition),
    reused = [],
    dispatch = [],
  }: {
    readonly compiled?: CompiledDefinition;
    readonly reused?: readonly string[];
    readonly dispatch?: readonly DecidedRoute[];
  } = {},
): RunPlan {
  const known = new Set(reused);
  const dispatchOf = createDispatchOf(definition, dispatch);
  const indexes = definition.steps.flatMap(({ id }, index) => (known.has(id) ? [index] : []));
  return {
    max_in_flight: maxInFlight,
    steps: compiled.steps.map((step) => planStep(definition, step, dispatchOf)),
    ...(indexes.length === 0 ? {} : { reused: indexes }),
  };
}

function planStep(
  definition: PipelineDefinition,
  { definition: step, dependencies }: CompiledStep,
  dispatchOf: (step: StepDefinition) => DispatchChoice | null,
): PlannedStep {
  const { run_if, for_each: each } = step;
  return {
    id: step.id,
    capability: describeStep(step),
    dependencies,
    total_timeout_ms: resolveStepSettings(definition, step).totalTimeoutMs,
    ...(resolveEscalation(definition, step).enabled ? { escalates: true } : {}),
    ...(run_if === undefined || run_if === 'all_succeeded' ? {} : { run_if }),
    ...(step.when === undefined && each === undefined ? {} : { decides: true }),
    ...(each === undefined ? {} : { each: pickLimits(each) }),
    ...(step.on_error === 'continue' ? { continues: true } : {}),
    ...(dispatchOf(step)?.how === 'inline' ? { inline: true } : {}),
  };
}

function pickLimits({ max_parallel, tolerate }: NonNullable<CompiledStep['definition']['for_each']>) {
  return {
    ...(max_parallel === undefined ? {} : { max_parallel }),
    ...(tolerate === undefined ? {} : { tolerate }),
  };
}
