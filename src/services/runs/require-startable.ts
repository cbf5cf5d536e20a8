/**
 * Refuses a run that Temporal could not carry: its plan is part of one payload. Better a clear answer at submission
 * than a run that can never start.
 */
import { mostSteps } from '../../contracts/bounds.ts';
import type { DecidedRoute } from '../../contracts/dispatch.ts';
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import type { RunPlan } from '../../core/run/plan.ts';
import { planRun } from '../../core/run/plan-run.ts';
import { listOpenRoutes } from '../../core/run/step-dispatch.ts';
import { AppError } from '../../errors/app-error.ts';

/** Temporal refuses payloads of 2 MiB. */
const largestPlanBytes = 1_500_000;

/** That of a run in which nothing is queued that need not be. */
function largestPlan(definition: PipelineDefinition): RunPlan {
  const dispatch = listOpenRoutes(definition).map(
    (route): DecidedRoute => ({ ...route, how: 'inline', code: 'short' }),
  );
  return planRun(definition, { dispatch });
}

/** @throws AppError `definition_invalid` */
export function requireStartable(definition: PipelineDefinition): void {
  const { length } = definition.steps;
  if (length > mostSteps) {
    throw new AppError('definition_invalid', `a run of ${length} steps; at most ${mostSteps} are possible`);
  }
  const bytes = Buffer.byteLength(JSON.stringify(largestPlan(definition)));
  if (bytes <= largestPlanBytes) return;
  throw new AppError(
    'definition_invalid',
    `its ids and dependencies take ${bytes} bytes; at most ${largestPlanBytes} can be started`,
  );
}
