/**
 * Refuses a run that Temporal could not carry: its input is one payload, and its history has an end. Better a clear
 * answer at submission than a run that can never start.
 */
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import { AppError } from '../../errors.ts';
import { planRun } from './deliver-run.ts';

/** Temporal refuses payloads of 2 MiB. */
const largestPlanBytes = 1_500_000;
/** A step is about six events; Temporal ends a workflow at 51,200. */
const mostSteps = 8_000;

/** @throws AppError `definition_invalid` */
export const requireStartable = (definition: PipelineDefinition): void => {
  const { length } = definition.steps;
  if (length > mostSteps) {
    throw new AppError('definition_invalid', `a run of ${length} steps; at most ${mostSteps} are possible`);
  }
  const bytes = Buffer.byteLength(JSON.stringify(planRun({ definition })));
  if (bytes <= largestPlanBytes) return;
  throw new AppError(
    'definition_invalid',
    `its ids and dependencies take ${bytes} bytes; at most ${largestPlanBytes} can be started`,
  );
};
