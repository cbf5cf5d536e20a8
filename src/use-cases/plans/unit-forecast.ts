/**
 * Forecasts one execution of a step of any kind: a call, a child run, a wait, a review, an outside event or
 * values that are set.
 */
import { setImmediate } from 'node:timers/promises';
import { mostAttempts } from '@capstan/core/call/retry';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import { findPipeline } from '@capstan/core/definition/checks/check-availability';
import { capabilityOf, resolveStepSettings, routeOfStep } from '@capstan/core/definition/step-settings';
import { parseDuration } from '@capstan/core/duration';
import { AppError } from '@capstan/core/errors/app-error';
import { eventTimeoutOf } from '@capstan/core/outside-events/rules';
import { lowestCeiling } from '@capstan/core/routing/estimate';
import { ceilingOfSubRun, findDepthFault, splitReference, termsOfSubRun } from '@capstan/core/run/step-rules';
import { checkJob, type KnownDefinition } from '../../parts/definitions/known-definitions.ts';
import { newId } from '../../parts/ids.ts';
import {
  capCost,
  forecastCall,
  nobody,
  type PlanContext,
  type PlannedUnit,
  type RunForecast,
  type RunTask,
  type UnitForecast,
} from './forecast.ts';

/** Forecasts a step that starts a child run: it is planned like any run, with the step's input as its job. */
async function forecastSubRun(context: PlanContext, task: RunTask, unit: PlannedUnit): Promise<UnitForecast> {
  const terms = termsOfSubRun(unit.step.definition, task);
  const { reference } = terms;
  const pointer = `${unit.pointer}/pipeline`;
  const tooDeep = findDepthFault(terms.depth);
  if (tooDeep !== null) return refuse(pointer, 'pipeline_depth', `${reference}: ${tooDeep.message}`);
  try {
    const known = await findKnown(context, reference);
    const { definition } = known;
    const job = unit.input;
    if (job !== null) await checkJob(context.ctx, known, job);
    const own = ceilingOfSubRun(terms, definition);
    const ceilingUsd = lowestCeiling(own, task.ceilingUsd);
    const asked: RunTask = { ...terms, definition, job, jobId: newId('job'), ceilingUsd };
    return showSubRun(await forecastOnce(context, asked), { definition, own, pointer });
  } catch (error) {
    if (!(error instanceof AppError) || error.code === 'expression_limit') throw error;
    if (error.code === 'job_invalid') return refuse(`${unit.pointer}/input`, error.code, error.message);
    return refuse(pointer, error.code === 'not_found' ? 'pipeline_unknown' : error.code, error.message);
  }
}

/** By `name@version` or `name@alias`. @throws AppError `not_found`, `definition_invalid` */
function findKnown(context: PlanContext, reference: string): Promise<KnownDefinition> {
  const { pipelines } = context;
  const found = pipelines.get(reference) ?? readKnown(context, reference);
  pipelines.set(reference, found);
  return found;
}

async function readKnown(
  { ctx, projectId, beside }: PlanContext,
  reference: string,
): Promise<KnownDefinition> {
  const [pipeline, version] = splitReference(reference);
  try {
    return await ctx.definitions.find(projectId, pipeline, { reference: version });
  } catch (error) {
    const lying = findPipeline(beside, reference);
    if (lying === undefined || !(error instanceof AppError && error.code === 'not_found')) throw error;
    return ctx.definitions.ofBody(lying);
  }
}

/** Equal runs share one forecast. */
function forecastOnce(context: PlanContext, asked: RunTask): Promise<RunForecast> {
  const { runs, inputBudget } = context;
  const known = runs.get(nameTask(asked));
  if (known !== undefined) return known;
  const task = spendInputBudget(inputBudget, asked);
  const forecast = runs.get(nameTask(task)) ?? context.forecastRun(context, task);
  runs.set(nameTask(task), forecast);
  return forecast;
}

/** The same text for runs with the same forecast. */
function nameTask({ definition, job, priority, ceilingUsd, depth }: RunTask): string {
  return JSON.stringify([definition.pipeline, definition.version, priority, ceilingUsd, depth, job]);
}

/** A run whose job can no longer be examined is planned with any job. */
function spendInputBudget(room: PlanContext['inputBudget'], task: RunTask): RunTask {
  if (task.job === null) return task;
  const { length } = task.definition.steps;
  if (length <= room.left) {
    room.left -= length;
    return task;
  }
  room.isShort = true;
  return { ...task, job: null };
}

/** It is certain to fail. */
function refuse(pointer: string, code: string, message: string): UnitForecast {
  return { ...nobody, reason: message, findings: [{ severity: 'error', code, pointer, message }] };
}

interface PlannedSubRun {
  readonly definition: PipelineDefinition;
  /** Its own ceiling, USD; null = none. */
  readonly own: number | null;
  /** JSON Pointer of the pipeline's name in the step. */
  readonly pointer: string;
}

function showSubRun(
  { steps, cost, durationMs, workload, findings }: RunForecast,
  { definition, own, pointer }: PlannedSubRun,
): UnitForecast {
  const size = steps.length === 1 ? '1 step' : `${steps.length} steps`;
  const name = `${definition.pipeline}@${definition.version}`;
  return {
    ...nobody,
    cost: capCost(cost, own),
    durationMs,
    within: workload,
    reason: `a run of ${name}: ${size}`,
    findings: findings.map(({ severity, code, pointer: at, message }) => ({
      severity,
      code,
      pointer,
      message: `${name} at ${at}: ${message}`,
    })),
  };
}

const unitsPerTurn = 100;

export async function forecastUnit(
  context: PlanContext,
  task: RunTask,
  unit: PlannedUnit,
): Promise<UnitForecast> {
  const { definition, kind } = unit.step;
  if (++context.units % unitsPerTurn === 0) await setImmediate();
  switch (kind) {
    case 'call':
      return forecastCallOf(context, task, unit);
    case 'run':
      return forecastSubRun(context, task, unit);
    case 'wait':
      return { ...nobody, reason: 'nobody is called', durationMs: parseDuration(definition.wait ?? '0s') };
    case 'set':
      return { ...nobody, reason: 'values are set; no instance is called' };
    case 'event': {
      const limit = eventTimeoutOf(definition);
      const message = `the run waits here for the event ${definition.event?.name}, for at most ${limit}`;
      const finding: Finding = { severity: 'note', code: 'event_awaited', pointer: unit.pointer, message };
      return { ...nobody, reason: `an event is awaited, for at most ${limit}`, findings: [finding] };
    }
    case 'review': {
      const message = 'the run waits here for a person, for as long as that takes';
      const finding: Finding = { severity: 'note', code: 'person_asked', pointer: unit.pointer, message };
      return { ...nobody, reason: 'a person is asked', findings: [finding] };
    }
  }
}

/** A kept result costs nothing. If it is gone when the step runs, the call is made. */
async function forecastCallOf(context: PlanContext, task: RunTask, unit: PlannedUnit): Promise<UnitForecast> {
  const called = await forecastRouted(context, task, unit);
  const { projectId, findKept } = context;
  const { definition, jobId: job_id } = task;
  const { step, input } = unit;
  if (input === null) return called;
  // The run has not begun, so it has no result of its own.
  const run = { run_id: '', job_id, pipeline: definition.pipeline };
  const kept = await findKept({ projectId, definition, run, step: step.definition, input });
  if (kept === null) return called;
  const made = kept === 'equal_call' ? 'an equal call of this run' : `step ${kept.step_id} of ${kept.run_id}`;
  return {
    ...nobody,
    cached: 1,
    reason: `cached: 0 USD, the result of ${made}`,
    cost: { ...called.cost, least: 0n, expected: 0n },
  };
}

async function forecastRouted(
  context: PlanContext,
  { definition, priority, ceilingUsd }: RunTask,
  { step, pointer, input }: PlannedUnit,
): Promise<UnitForecast> {
  const { registered, missing, onBudget = null } = context;
  const settings = resolveStepSettings(definition, step.definition);
  const capability = capabilityOf(step.definition);
  const { trouble, ...forecast } = await forecastCall(context, {
    input,
    attempts: mostAttempts(settings.retry),
    route: routeOfStep(step.definition, settings, {
      priority,
      ceilingUsd,
      onBudget,
      remainingMs: settings.totalTimeoutMs,
    }),
  });
  if (!registered.has(capability)) missing.add(capability); // a finding of the definition's checks
  if (trouble === null || !registered.has(capability)) return { ...forecast, findings: [] };
  const { code, message } = trouble.error;
  const place = code === 'input_invalid' ? `${pointer}/input` : pointer;
  const severity = trouble.isFinal ? 'error' : 'warning';
  return { ...forecast, findings: [{ severity, code, pointer: place, message }] };
}
