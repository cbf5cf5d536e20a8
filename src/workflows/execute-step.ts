/**
 * A step as seen by the workflow: one activity, however it ends. Rejections become ends of the step. Without
 * async functions on the way of success: the sandbox records a stack for every promise, which is what a step
 * costs here.
 */

import { RetryState } from '@temporalio/common';
import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  TimeoutFailure,
} from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import type { Failure } from '../contracts/primitives.ts';
import type { StepEnd } from '../core/run/drive.ts';
import type { PlannedStep } from '../core/run/plan.ts';
import type { StepNote } from '../core/run/progress-table.ts';
import type { RunPipelineInput } from '../core/run/workflow-input.ts';

const { recordProgress } = proxyLocalActivities<Activities>({
  startToCloseTimeout: '60 seconds',
  retry: { initialInterval: '200 ms', maximumInterval: '10 seconds' },
});

type OnDone = (step: number, note: StepNote) => void;

export const createStepExecutor = (
  input: RunPipelineInput,
  onDone: OnDone,
): ((step: PlannedStep) => Promise<StepEnd>) => {
  const indexOf = new Map(input.plan.steps.map(({ id }, index) => [id, index]));
  return (step) => {
    const revision = 0;
    const { executeStep } = proxyActivities<Activities>({
      activityId: `${step.id}/0/${revision}`,
      summary: `${step.id} → ${step.capability}`,
      scheduleToCloseTimeout: step.total_timeout_ms,
      heartbeatTimeout: input.heartbeat_timeout_ms,
      cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
      retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '10 seconds' },
    });
    const request = { run_id: input.run_id, step_id: step.id, revision };
    return executeStep(request).then(
      (done): StepEnd => {
        onDone(indexOf.get(step.id) ?? 0, { ...done, endpoint: done.endpoint ?? '' });
        return { state: 'succeeded' };
      },
      async (error: unknown): Promise<StepEnd> => {
        const end = endOf(error, step);
        if (decidedHere.has(end.error.code)) {
          const record = { ...request, error: end.error };
          await CancellationScope.nonCancellable(() => recordProgress({ ...record, state: 'failed' }));
        }
        return end;
      },
    );
  };
};

/** Ends that no attempt has written. */
const decidedHere: ReadonlySet<string> = new Set(['step_timeout', 'internal', 'not_found']);

const endOf = (error: unknown, step: PlannedStep): StepEnd & { readonly error: Failure } => {
  const isRefusedRetry = error instanceof ActivityFailure && error.retryState === RetryState.CANCEL_REQUESTED;
  if (isCancellation(error) || isRefusedRetry) {
    return { state: 'cancelled', error: { code: 'run_cancelled', message: 'the step was cancelled' } };
  }
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (cause instanceof ApplicationFailure && cause.nonRetryable === true) {
    const failure = { code: cause.type ?? 'internal', message: cause.message };
    return { state: failure.code === 'delivery_unknown' ? 'unknown' : 'failed', error: failure };
  }
  const isOutOfTime =
    cause instanceof TimeoutFailure ||
    (error instanceof ActivityFailure && error.retryState === RetryState.TIMEOUT);
  const last = reasonOf(cause);
  return {
    state: 'failed',
    error: isOutOfTime
      ? { code: 'step_timeout', message: `not done within ${step.total_timeout_ms} ms; last: ${last}` }
      : { code: 'internal', message: last },
  };
};

/** A timeout says nothing by itself; the attempt before it does. */
const reasonOf = (cause: unknown): string => {
  if (cause instanceof TimeoutFailure && cause.cause instanceof Error) return cause.cause.message;
  return cause instanceof Error ? cause.message : String(cause);
};
