/** Writes an end of a step that no attempt has written, also when the run is being cancelled. */
import { CancellationScope, proxyLocalActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import type { Failure } from '../contracts/primitives.ts';
import type { PlannedStep } from '../core/run/plan.ts';
import type { RunPipelineInput } from '../core/run/workflow-input.ts';

const { recordProgress } = proxyLocalActivities<Activities>({
  startToCloseTimeout: '60 seconds',
  retry: { initialInterval: '200 ms', maximumInterval: '10 seconds' },
});

export const recordStepEnd = (
  { run_id }: RunPipelineInput,
  { id }: PlannedStep,
  state: 'failed' | 'cancelled',
  error: Failure,
): Promise<void> =>
  CancellationScope.nonCancellable(() => recordProgress({ run_id, step_id: id, revision: 0, state, error }));
