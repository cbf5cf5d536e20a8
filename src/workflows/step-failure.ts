/** What the failure of a step's activity means for the unit. */
import { RetryState } from '@temporalio/common';
import { ActivityFailure, ApplicationFailure, isCancellation, TimeoutFailure } from '@temporalio/workflow';
import type { Failure } from '../contracts/primitives.ts';
import type { UnitEnd } from '../core/run/drive.ts';
import type { PlannedStep } from '../core/run/plan.ts';
import type { LadderPosition } from '../core/workflow-payloads/escalate-input.ts';

/** The ladder that has begun for the failure: the activity says so in its details. */
export function ladderOf(error: unknown): LadderPosition | undefined {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (!(cause instanceof ApplicationFailure)) return undefined;
  const [, place] = (cause.details ?? []) as [unknown, LadderPosition?];
  return place;
}

export function endOf(error: unknown, step: PlannedStep): UnitEnd & { readonly error: Failure } {
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
}

/** A timeout says nothing by itself; the attempt before it does. */
function reasonOf(cause: unknown): string {
  if (cause instanceof TimeoutFailure && cause.cause instanceof Error) return cause.cause.message;
  return cause instanceof Error ? cause.message : String(cause);
}
