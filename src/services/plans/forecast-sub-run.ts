/** A step that is a run of another pipeline: planned like any run, its job the step's input. */
import type { Finding, PipelineDefinition } from '../../contracts/pipeline.ts';
import { resolveStepSettings } from '../../core/definition/compile/step-settings.ts';
import { lowestCeiling } from '../../core/routing/estimate.ts';
import { findDepthFault } from '../../core/run/sub-run.ts';
import { AppError } from '../../errors/app-error.ts';
import { newId } from '../ids.ts';
import type { KnownDefinition } from '../runs/known-definitions.ts';
import { capCost, noCost } from './cost-range.ts';
import type { PlanContext, PlannedUnit, RunTask, UnitForecast } from './forecast.ts';

export async function forecastSubRun(
  context: PlanContext,
  task: RunTask,
  unit: PlannedUnit,
): Promise<UnitForecast> {
  const reference = unit.step.definition.pipeline ?? '';
  const pointer = `${unit.pointer}/pipeline`;
  const tooDeep = findDepthFault(task.depth + 1);
  if (tooDeep !== null) return refuse(pointer, 'pipeline_depth', `${reference}: ${tooDeep.message}`);
  try {
    const known = await context.findPipeline(reference);
    return await forecastKnown(context, task, { ...unit, pointer, known });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    if (error.code === 'job_invalid') return refuse(`${unit.pointer}/input`, error.code, error.message);
    return refuse(pointer, error.code === 'not_found' ? 'pipeline_unknown' : error.code, error.message);
  }
}

/** It is certain to fail. */
function refuse(pointer: string, code: string, message: string): UnitForecast {
  return {
    chosen: null,
    candidates: [],
    cost: noCost,
    durationMs: 0,
    reason: message,
    findings: [{ severity: 'error', code, pointer, message }],
  };
}

/** @throws AppError `job_invalid` */
async function forecastKnown(
  context: PlanContext,
  task: RunTask,
  { step, pointer, input, known }: PlannedUnit & { readonly known: KnownDefinition },
): Promise<UnitForecast> {
  const { definition } = known;
  if (input !== null) known.checkJob(input);
  const settings = resolveStepSettings(task.definition, step.definition);
  const own = lowestCeiling(
    step.definition.budget_ceiling_usd ?? null,
    definition.budget_ceiling_usd ?? null,
  );
  const { steps, cost, path, findings } = await context.forecastRun({
    definition,
    job: input,
    jobId: newId('job'),
    depth: task.depth + 1,
    priority: settings.priority ?? task.priority,
    ceilingUsd: lowestCeiling(own, task.ceilingUsd),
  });
  const size = steps.length === 1 ? '1 step' : `${steps.length} steps`;
  return {
    chosen: null,
    candidates: [],
    cost: capCost(cost, own),
    durationMs: path.durationMs,
    reason: `a run of ${definition.pipeline}@${definition.version}: ${size}`,
    findings: findings.map((finding) => bringUp(finding, definition, pointer)),
  };
}

function bringUp(
  { severity, code, pointer: at, message }: Finding,
  { pipeline, version }: PipelineDefinition,
  pointer: string,
): Finding {
  return { severity, code, pointer, message: `${pipeline}@${version} at ${at}: ${message}` };
}
