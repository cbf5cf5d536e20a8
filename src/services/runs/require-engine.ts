/**
 * While old workers are still among the new ones, runs get the engine version of the old ones, which know nothing of
 * what came later. Better a clear answer at submission than a run that does something else.
 */
import type { PipelineDefinition, StepDefinition } from '../../contracts/pipeline.ts';
import { waitingVersion } from '../../core/workflow-payloads/run-input.ts';
import { AppError } from '../../errors/app-error.ts';

/** Keys of steps that engine version 2 does not know, and the values that mean nothing. */
const newerKeys: Readonly<Partial<Record<keyof StepDefinition, unknown>>> = {
  pipeline: undefined,
  wait: undefined,
  review: undefined,
  when: undefined,
  run_if: 'all_succeeded',
  for_each: undefined,
  on_error: 'fail',
  dispatch: 'queued',
  wait_for_capability: undefined,
};

/** @throws AppError `definition_invalid` that names the keys */
export function requireEngine({ steps }: PipelineDefinition, engineVersion: number): void {
  if (engineVersion >= waitingVersion) return;
  const errors = steps.flatMap((step, index) =>
    Object.entries(newerKeys).flatMap(([key, meaningless]) => {
      const value = step[key as keyof StepDefinition];
      if (value === undefined || value === meaningless) return [];
      const message = `${key} needs engine version ${waitingVersion}; new runs get ${engineVersion} here (ENGINE_VERSION)`;
      return [{ pointer: `/steps/${index}/${key}`, code: 'engine_too_old', message }];
    }),
  );
  if (errors[0] !== undefined) throw new AppError('definition_invalid', errors[0].message, { errors });
}

/** @throws AppError `state_conflict`: older workers would execute again what is to be reused */
export function requireReuse(engineVersion: number): void {
  if (engineVersion >= waitingVersion) return;
  throw new AppError(
    'state_conflict',
    `results can be reused from engine version ${waitingVersion} on; new runs get ${engineVersion} here (ENGINE_VERSION)`,
  );
}
