/** One execution of a step, whatever its kind: a call, a run of another pipeline, a pause, a question to a person. */
import type { Finding } from '../../contracts/pipeline.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import { routeOfStep } from '../../core/definition/compile/step-route.ts';
import { resolveStepSettings } from '../../core/definition/compile/step-settings.ts';
import { capabilityOf } from '../../core/definition/step-kind.ts';
import { parseDuration } from '../../core/duration.ts';
import { noCost } from './cost-range.ts';
import type { PlanContext, PlannedUnit, RunTask, UnitForecast } from './forecast.ts';
import { forecastSubRun } from './forecast-sub-run.ts';

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
