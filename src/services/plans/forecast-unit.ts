/** One execution of a step, whatever its kind: a call, a run of another pipeline, a pause, a question to a person. */
import type { Finding } from '../../contracts/pipeline.ts';
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

async function forecastCallOf(
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
