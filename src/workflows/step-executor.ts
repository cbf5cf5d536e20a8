/**
 * Executes a unit from the workflow's view: an activity, or a part of one, with any end. Rejections become ends of the
 * unit: the failure of a step's activity determines which. The path of success has no async functions: the SDK
 * watches every promise of the sandbox, which is the main cost of a step here.
 */

import type { Failure } from '@capstan/core/contracts/primitives';
import { formatDuration } from '@capstan/core/duration';
import { isStepResult } from '@capstan/core/received/workflow-messages';
import type { DrivenRun, Unit, UnitEnd, UnitResult, UnitWaiting } from '@capstan/core/run/drive';
import type { Wait } from '@capstan/core/run/machine-state';
import type { PlannedStep } from '@capstan/core/run/plan';
import { describeAwaited, summarizeUnit } from '@capstan/core/workflow-names';
import { type LadderPosition, type RunPipelineInput, reportMs } from '@capstan/core/workflow-payloads';
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
import type {
  InlineEnd,
  StepActivityDone,
  StepActivityRequest,
  StepActivityWaits,
} from '../activities/step-activities.ts';
import { createInlineBatches, type RunCourse, toAskedUnit } from './inline-batches.ts';
import type { ProgressRecorder } from './progress-recorder.ts';
import type { LocalTurns, RunControl } from './run-control.ts';
import type { StepNote } from './web-ui.ts';

/** The ladder that has begun for the failure, from the details of the activity's error. */
function ladderOf(error: unknown): LadderPosition | undefined {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (!(cause instanceof ApplicationFailure)) return undefined;
  const [, place] = (cause.details ?? []) as [unknown, LadderPosition?];
  return place;
}

function endOf(error: unknown, step: PlannedStep): UnitEnd & { readonly error: Failure } {
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
      ? {
          code: 'step_timeout',
          message: `not done within ${formatDuration(step.total_timeout_ms)}; last: ${last}`,
        }
      : { code: 'internal', message: last },
  };
}

/** A timeout has no reason of its own; the attempt before it has. */
function reasonOf(cause: unknown): string {
  if (cause instanceof TimeoutFailure) {
    return cause.cause instanceof Error ? cause.cause.message : 'no worker has reported how it ended';
  }
  return cause instanceof Error ? cause.message : String(cause);
}

export interface StepExecutorDependencies {
  readonly input: RunPipelineInput;
  readonly run: DrivenRun;
  readonly recorder: ProgressRecorder;
  /** The state of the run's row, as last notified. */
  readonly control: RunControl['current'];
  /** Runs an activity in the scope of all running units, once everything recorded is stored. */
  readonly inScope: <Result>(work: () => Promise<Result>, unit?: Unit) => Promise<Result>;
  /** Why the unit was called off; undefined: it was not. */
  readonly whyOf: (unit: Unit) => Failure | undefined;
  readonly course: RunCourse;
  /** Runs a local activity under the mutex. */
  readonly inTurn: LocalTurns;
  readonly done: (unit: Unit, note: StepNote) => void;
  /** Called for a final failure. */
  readonly failed: (unit: Unit, error: Failure) => void;
  readonly escalated: (unit: Unit, place: LadderPosition, error: Failure) => void;
}

/** @param waited the unit's finished wait; absent: the unit begins */
export type StepExecutor = (unit: Unit, waited?: Wait) => Promise<UnitResult>;

export function createStepExecutor(dependencies: StepExecutorDependencies): StepExecutor {
  const { input, run, course, control, inScope, inTurn } = dependencies;
  const { run_id } = input;
  const inBatchTurn: LocalTurns = (work) => inScope(() => inTurn(work));
  const budgetVersion = () => control().budget_version;
  const batches = createInlineBatches({ run_id, run, course, budgetVersion, inTurn: inBatchTurn });

  const queue = (unit: Unit, how: QueuedStep, why?: string): Promise<UnitResult> =>
    inScope(() => executeQueued(dependencies, { unit, summary: summarizeUnit(unit, why) }, how), unit);
  const take = (unit: Unit, end: InlineEnd): UnitResult | Promise<UnitResult> => {
    if (typeof end === 'object') {
      return 'waiting' in end ? toWaits(end.waiting) : succeed(dependencies, unit, end);
    }
    if (end === 'again') return queue(unit, ...begunBefore);
    return run.state.isPaused ? heldInPause() : queue(unit, {});
  };

  return (unit, waited) => {
    if (waited !== undefined) return queue(unit, ...resumedAfter(waited));
    const known = batches.takeKnown(unit);
    if (known !== undefined) return Promise.resolve(take(unit, known));
    if (unit.step.inline !== true) return queue(unit, {});
    return batches.execute(unit).then((end) => take(unit, end));
  };
}

/** again: it was begun in a batch. left_ms: of its time, after a wait. */
interface QueuedStep extends Pick<StepActivityRequest, 'resumed' | 'again' | 'rounds'> {
  readonly left_ms?: number;
}

const begunBefore: readonly [QueuedStep, string] = [{ again: true }, 'begun among short steps'];

function resumedAfter(wait: Wait): readonly [QueuedStep, string] {
  const { left_ms, rounds } = (wait.ref ?? {}) as WaitRef;
  const left = {
    ...(left_ms === undefined ? {} : { left_ms }),
    ...(rounds === undefined ? {} : { rounds }),
  };
  return [{ resumed: true, ...left }, `after its wait for ${describeAwaited(wait)}`];
}

/** A unit that is to begin in a pause waits for its end (M9). */
function heldInPause(): UnitWaiting {
  return { state: 'waiting', wait: { awaiting: 'retry', until: Date.now(), ref: null } };
}

interface NamedUnit {
  readonly unit: Unit;
  readonly summary: string;
}

function succeed({ done: note }: StepExecutorDependencies, unit: Unit, done: StepActivityDone): UnitEnd {
  note(unit, { ...done, endpoint: done.endpoint ?? '' });
  return { state: 'succeeded' };
}

function executeQueued(
  dependencies: StepExecutorDependencies,
  named: NamedUnit,
  how: QueuedStep,
): Promise<UnitResult> {
  const { unit } = named;
  const { input, control } = dependencies;
  const { budget_version, paused_ms = 0 } = control();
  const { left_ms = unit.step.total_timeout_ms, ...state } = how;
  const request: StepActivityRequest = {
    run_id: input.run_id,
    revision: 0,
    ...toAskedUnit(unit),
    ...(budget_version === 0 ? {} : { budget_version }),
    ...(paused_ms === 0 ? {} : { paused_ms }),
    ...(unit.step.is_callable_off === true ? { is_callable_off: true } : {}),
    ...state,
  };
  return queuedActivity(
    input,
    named,
    left_ms,
  )(request).then(
    (result): UnitResult | Promise<UnitResult> => {
      // Completed by hand: the row decides, and asks for it.
      if (!isStepResult(result)) return executeQueued(dependencies, named, { ...how, again: true });
      if ('waiting' in result) return toWaits(result.waiting);
      return 'skipped' in result ? { state: 'skipped' } : succeed(dependencies, unit, result);
    },
    (error: unknown) => endFailed(dependencies, unit, error),
  );
}

function queuedActivity(
  input: RunPipelineInput,
  { unit, summary }: NamedUnit,
  leftMs: number,
): Activities['executeStep'] {
  return proxyActivities<Activities>({
    activityId: `${unit.step.id}/${unit.item}/0`,
    summary,
    scheduleToCloseTimeout: leftMs + reportMs,
    heartbeatTimeout: input.heartbeat_timeout_ms,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '10 seconds' },
  }).executeStep;
}

/** The driver's part of a wait. */
type WaitRef = Readonly<Pick<StepActivityWaits['waiting'], 'left_ms' | 'rounds'>> &
  NonNullable<StepActivityWaits['waiting']['ref']>;

function toWaits({ awaiting, until, ref, left_ms, rounds }: StepActivityWaits['waiting']): UnitWaiting {
  const own: WaitRef = {
    ...ref,
    ...(left_ms === undefined ? {} : { left_ms }),
    ...(rounds === undefined ? {} : { rounds }),
  };
  return {
    state: 'waiting',
    wait: {
      awaiting,
      until: until === null ? null : Date.parse(until),
      ref: Object.keys(own).length === 0 ? null : { ...own },
    },
  };
}

/** Codes of ends that no attempt has stored. */
const decidedHere: ReadonlySet<string> = new Set(['step_timeout', 'internal', 'not_found']);

async function endFailed(
  { recorder, failed, escalated, whyOf }: StepExecutorDependencies,
  unit: Unit,
  thrown: unknown,
): Promise<UnitResult> {
  const own = endOf(thrown, unit.step);
  const why = own.state === 'cancelled' ? whyOf(unit) : undefined;
  const end = why === undefined ? own : { ...own, error: why };
  const place = ladderOf(thrown);
  if (place !== undefined) {
    escalated(unit, place, end.error);
    return { state: 'escalated' };
  }
  failed(unit, end.error);
  if (decidedHere.has(end.error.code)) {
    const { step, item } = unit;
    await recorder.record([{ step_id: step.id, item, state: 'failed', error: end.error }]);
  }
  return end;
}
