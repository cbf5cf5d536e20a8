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
  isCancellation,
  proxyActivities,
  TimeoutFailure,
} from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import type { Failure } from '../contracts/primitives.ts';
import type { RunPorts, StepEnd } from '../core/run/drive.ts';
import type { LadderPlace } from '../core/run/escalate-input.ts';
import type { PlannedStep } from '../core/run/plan.ts';
import type { StepNote } from '../core/run/progress-table.ts';
import { escalatingVersion, type RunPipelineInput } from '../core/run/workflow-input.ts';
import { recordStepEnd } from './record-step-end.ts';

export interface StepListener {
  done(step: PlannedStep, note: StepNote): void;
  escalated(step: PlannedStep, place: LadderPlace, error: Failure): void;
}

export const createStepExecutor = (
  input: RunPipelineInput,
  listener: StepListener,
): RunPorts['executeStep'] => {
  const mayEscalate = input.engine_version >= escalatingVersion;
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
    const escalates = mayEscalate && step.escalates === true;
    return executeStep(escalates ? { ...request, escalates } : request).then(
      (done): StepEnd => {
        listener.done(step, { ...done, endpoint: done.endpoint ?? '' });
        return { state: 'succeeded' };
      },
      async (error: unknown) => {
        const end = endOf(error, step);
        const place = escalates ? ladderOf(error) : undefined;
        if (place !== undefined) {
          listener.escalated(step, place, end.error);
          return { state: 'escalated' } as const;
        }
        if (decidedHere.has(end.error.code)) await recordStepEnd(input, step, 'failed', end.error);
        return end;
      },
    );
  };
};

/** Ends that no attempt has written. */
const decidedHere: ReadonlySet<string> = new Set(['step_timeout', 'internal', 'not_found']);

/** The activity says in the details of the failure that an escalation is there. */
const ladderOf = (error: unknown): LadderPlace | undefined => {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (!(cause instanceof ApplicationFailure)) return undefined;
  const [, place] = (cause.details ?? []) as [unknown, LadderPlace?];
  return place;
};

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
