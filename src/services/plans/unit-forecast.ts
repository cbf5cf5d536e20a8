/**
 * One execution of a step, whatever its kind: a call, a run of another pipeline, a pause, a question to a person.
 */
import type { Finding, PipelineDefinition } from '../../contracts/pipeline.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import { capabilityOf, resolveStepSettings, routeOfStep } from '../../core/definition/step-settings.ts';
import { parseDuration } from '../../core/duration.ts';
import { lowestCeiling } from '../../core/routing/estimate.ts';
import { findDepthFault } from '../../core/run/step-failures.ts';
import { AppError } from '../../errors/app-error.ts';
import { newId } from '../ids.ts';
import type { KnownDefinition } from '../runs/definitions.ts';
import {
  capCost,
  noCost,
  type PlanContext,
  type PlannedUnit,
  type RunTask,
  type UnitForecast,
} from './forecast.ts';

/** A step that is a run of another pipeline: planned like any run, its job the step's input. */
async function forecastSubRun(context: PlanContext, task: RunTask, unit: PlannedUnit): Promise<UnitForecast> {
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

export async function forecastUnit(
  context: PlanContext,
  task: RunTask,
  unit: PlannedUnit,
): Promise<UnitForecast> {
  const { definition, kind } = unit.step;
  await context.yieldToEventLoop();
  switch (kind) {
    case 'call':
      return forecastCallOf(context, task, unit);
    case 'run':
      return forecastSubRun(context, task, unit);
    case 'wait':
      return { ...nobody, reason: 'nobody is called', durationMs: parseDuration(definition.wait ?? '0s') };
    case 'review': {
      const message = 'the run waits here for a person, for as long as that takes';
      const finding: Finding = { severity: 'note', code: 'person_asked', pointer: unit.pointer, message };
      return { ...nobody, reason: 'a person is asked', durationMs: 0, findings: [finding] };
    }
  }
}

const nobody = { chosen: null, candidates: [], cost: noCost, findings: [] };

/** A result that is kept costs nothing; should it be gone when its turn comes, the call is made. */
async function forecastCallOf(context: PlanContext, task: RunTask, unit: PlannedUnit): Promise<UnitForecast> {
  const called = await forecastRouted(context, task, unit);
  const kept = unit.input === null ? null : await findKept(context, task, { ...unit, input: unit.input });
  if (kept === null) return called;
  const made = kept === 'equal_call' ? 'an equal call of this run' : `step ${kept.step_id} of ${kept.run_id}`;
  return {
    ...nobody,
    cached: 1,
    reason: `cached: 0 USD, the result of ${made}`,
    cost: { ...called.cost, least: 0n, expected: 0n },
    durationMs: 0,
  };
}

/** The run has not begun, so that it has no result of its own. */
function findKept(
  context: PlanContext,
  { definition, jobId: job_id }: RunTask,
  { step, input }: PlannedUnit & { readonly input: JsonObject },
) {
  const { projectId } = context;
  const run = { run_id: '', job_id, pipeline: definition.pipeline };
  return context.findKept({ projectId, definition, run, step: step.definition, input });
}

async function forecastRouted(
  { forecastCall, registered, missing }: PlanContext,
  { definition, priority, ceilingUsd }: RunTask,
  { step, pointer, input }: PlannedUnit,
): Promise<UnitForecast> {
  const settings = resolveStepSettings(definition, step.definition);
  const capability = capabilityOf(step.definition);
  const { trouble, ...forecast } = await forecastCall({
    input,
    retryMax: settings.retry.max,
    route: routeOfStep(step.definition, settings, {
      priority,
      ceilingUsd,
      remainingMs: settings.totalTimeoutMs,
    }),
  });
  if (!registered.has(capability)) missing.add(capability); // a finding of the definition's checks
  if (trouble === null || !registered.has(capability)) return { ...forecast, findings: [] };
  const { code, message, isFinal } = trouble;
  const place = code === 'input_invalid' ? `${pointer}/input` : pointer;
  const severity = isFinal ? 'error' : 'warning';
  return { ...forecast, findings: [{ severity, code, pointer: place, message }] };
}
