/**
 * Refuses a run that Temporal could not carry: its plan is part of one payload. Better a clear answer at submission
 * than a run that can never start.
 */
import { mostSteps } from '../../contracts/bounds.ts';
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import { planRun } from '../../core/run/plan-run.ts';
import { AppError } from '../../errors/app-error.ts';

/** Temporal refuses payloads of 2 MiB. */
const largestPlanBytes = 1_500_000;

/** @throws AppError `definition_invalid` */
export function requireStartable(definition: PipelineDefinition): void {
  const { length } = definition.steps;
  if (length > mostSteps) {
    throw new AppError('definition_invalid', `a run of ${length} steps; at most ${mostSteps} are possible`);
  }
  const bytes = Buffer.byteLength(JSON.stringify(planRun(definition)));
  if (bytes <= largestPlanBytes) return;
  throw new AppError(
    'definition_invalid',
    `its ids and dependencies take ${bytes} bytes; at most ${largestPlanBytes} can be started`,
  );
}
