/**
 * A unit as seen by the workflow: one activity, however it ends. Rejections become ends of the unit. Without
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
  proxyLocalActivities,
  TimeoutFailure,
} from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import type { StepActivityDone, StepActivityResult } from '../activities/execute-step.ts';
import type { Failure } from '../contracts/primitives.ts';
import type { StepEnd, StepWaits, Unit } from '../core/run/drive.ts';
import type { PlannedStep } from '../core/run/plan.ts';
import type { LadderPlace } from '../core/workflow-payloads/escalate-input.ts';
import type { RunPipelineInput } from '../core/workflow-payloads/run-input.ts';
import type { ProgressRecorder } from './progress-recorder.ts';
import type { StepNote } from './web-ui/progress-table.ts';

export interface StepExecution {
  readonly input: RunPipelineInput;
  readonly recorder: ProgressRecorder;
  /** Version of the last change of the run's ceiling; 0 = it is as the run began. */
  readonly budgetVersion: () => number;
  /** Whether the unit is alone, and may hold up the workflow for a moment. */
  readonly mayRunInline: (unit: Unit) => boolean;
  /** Of a unit that runs inline: what would run inline after it. */
  readonly followers: (unit: Unit) => readonly PlannedStep[];
  readonly done: (unit: Unit, note: StepNote, isInline: boolean) => void;
  readonly escalated: (unit: Unit, place: LadderPlace, error: Failure) => void;
}

/** again: in the queue, after it was tried inline. */
type Dispatch = 'queued' | 'inline' | 'again';

type Execution = Promise<StepEnd | StepWaits | { readonly state: 'escalated' }>;

/** For people: which step, and by what. */
export function summaryOf({ step, item }: Unit): string {
  return `${step.id}${item === 0 ? '' : ` [${item}]`} → ${step.capability}`;
}

/** @param isResumed its wait is over */
export function createStepExecutor(execution: StepExecution): (unit: Unit, isResumed: boolean) => Execution {
  const { input } = execution;
  /** Steps that were executed with one before them, by id. */
  const followed = new Map<string, StepActivityDone | null>();

  const succeed = (unit: Unit, { followed: others = [], ...done }: StepActivityDone, isInline: boolean) => {
    for (const { step_id, done: other } of others) followed.set(step_id, other);
    execution.done(unit, { ...done, endpoint: done.endpoint ?? '' }, isInline);
    return { state: 'succeeded' } as const;
  };

  const executeOnce = (unit: Unit, isResumed: boolean, how: Dispatch): Execution => {
    const escalates = unit.step.escalates === true;
    const work = how === 'inline' ? inlineActivity(unit) : queuedActivity(input, unit);
    return work(requestOf(execution, unit, { isResumed, escalates, how })).then(
      (result): StepEnd | StepWaits => {
        if ('waiting' in result) return toWaits(result.waiting);
        if ('skipped' in result) return { state: 'skipped' };
        return succeed(unit, result, how === 'inline');
      },
      (error: unknown) => {
        // What would have to be tried again is tried where it holds up nobody.
        if (how === 'inline' && mayBeRetried(error)) return executeOnce(unit, isResumed, 'again');
        return endFailed(execution, unit, error, escalates);
      },
    );
  };
  return (unit, isResumed) => {
    const done = unit.item === 0 ? followed.get(unit.step.id) : undefined;
    followed.delete(unit.step.id);
    if (done === undefined || isResumed) {
      return executeOnce(unit, isResumed, execution.mayRunInline(unit) ? 'inline' : 'queued');
    }
    return done === null ? executeOnce(unit, false, 'again') : Promise.resolve(succeed(unit, done, true));
  };
}

function requestOf(
  { input, budgetVersion, followers }: StepExecution,
  unit: Unit,
  {
    isResumed,
    escalates,
    how,
  }: { readonly isResumed: boolean; readonly escalates: boolean; readonly how: Dispatch },
) {
  const { step, item } = unit;
  const version = budgetVersion();
  const next = how === 'inline' && !isResumed ? followers(unit) : [];
  return {
    run_id: input.run_id,
    step_id: step.id,
    revision: 0,
    ...(item === 0 ? {} : { item }),
    ...(escalates ? { escalates } : {}),
    ...(isResumed ? { resumed: true as const } : {}),
    ...(version === 0 ? {} : { budget_version: version }),
    ...(how === 'queued' ? {} : { [how]: true }),
    ...(next.length === 0 ? {} : { followers: next.map(toFollower) }),
  };
}

function toFollower(step: PlannedStep) {
  return {
    step_id: step.id,
    escalates: step.escalates === true,
    ...(step.total_timeout_ms < longestInlineMs ? { total_timeout_ms: step.total_timeout_ms } : {}),
  };
}

function queuedActivity(input: RunPipelineInput, unit: Unit): Activities['executeStep'] {
  return proxyActivities<Activities>({
    activityId: `${unit.step.id}/${unit.item}/0`,
    summary: summaryOf(unit),
    scheduleToCloseTimeout: unit.step.total_timeout_ms,
    heartbeatTimeout: input.heartbeat_timeout_ms,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '10 seconds' },
  }).executeStep;
}

/** A local activity keeps its workflow task open: one that takes longer than this is no short step. */
const longestInlineMs = 5_000;

function inlineActivity({ step }: Unit): Activities['executeStep'] {
  return proxyLocalActivities<Activities>({
    scheduleToCloseTimeout: Math.min(longestInlineMs, step.total_timeout_ms),
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { maximumAttempts: 1 },
  }).executeStep;
}

function mayBeRetried(error: unknown): boolean {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  return !isCancellation(error) && !(cause instanceof ApplicationFailure && cause.nonRetryable === true);
}

function toWaits({
  awaiting,
  until,
  ref,
}: Extract<StepActivityResult, { waiting: unknown }>['waiting']): StepWaits {
  return {
    state: 'waiting',
    wait: {
      awaiting,
      until: until === null ? null : Date.parse(until),
      ref: ref === undefined ? null : { ...ref },
    },
  };
}

/** Ends that no attempt has written. */
const decidedHere: ReadonlySet<string> = new Set(['step_timeout', 'internal', 'not_found']);

async function endFailed(
  { recorder, escalated }: StepExecution,
  unit: Unit,
  thrown: unknown,
  escalates: boolean,
): Execution {
  const end = endOf(thrown, unit.step);
  const place = escalates ? ladderOf(thrown) : undefined;
  if (place !== undefined) {
    escalated(unit, place, end.error);
    return { state: 'escalated' };
  }
  if (decidedHere.has(end.error.code)) {
    const { step, item } = unit;
    await recorder.record([{ step_id: step.id, item, state: 'failed', error: end.error }]);
  }
  return end;
}

/** The activity says in the details of the failure that an escalation is there. */
function ladderOf(error: unknown): LadderPlace | undefined {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (!(cause instanceof ApplicationFailure)) return undefined;
  const [, place] = (cause.details ?? []) as [unknown, LadderPlace?];
  return place;
}

function endOf(error: unknown, step: PlannedStep): StepEnd & { readonly error: Failure } {
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
