/**
 * A unit as seen by the workflow: one activity, however it ends. Rejections become ends of the unit. Without
 * async functions on the way of success: the sandbox records a stack for every promise, which is what a step
 * costs here.
 */
import { ActivityCancellationType, proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import type { StepActivityDone, StepActivityResult } from '../activities/step-messages.ts';
import type { Failure } from '../contracts/primitives.ts';
import type { Unit, UnitEnd, UnitResult, UnitWaiting } from '../core/run/drive.ts';
import type { PlannedStep } from '../core/run/plan.ts';
import type { LadderPosition } from '../core/workflow-payloads/escalate-input.ts';
import type { RunPipelineInput } from '../core/workflow-payloads/run-input.ts';
import type { ProgressRecorder } from './progress-recorder.ts';
import { endOf, ladderOf, mayBeRetried } from './step-failure.ts';
import type { StepNote } from './web-ui/progress-table.ts';

export interface StepExecutorDependencies {
  readonly input: RunPipelineInput;
  readonly recorder: ProgressRecorder;
  /** Version of the last change of the run's ceiling; 0 = it is as the run began. */
  readonly budgetVersion: () => number;
  /** Whether the unit is alone, and may hold up the workflow for a moment. */
  readonly mayRunInline: (unit: Unit) => boolean;
  /** What would run inline after a unit that runs inline. */
  readonly followers: (unit: Unit) => readonly PlannedStep[];
  readonly done: (unit: Unit, note: StepNote, isInline: boolean) => void;
  /** It failed for good. */
  readonly failed: (unit: Unit, error: Failure) => void;
  readonly escalated: (unit: Unit, place: LadderPosition, error: Failure) => void;
}

/** again: in the queue, after it was tried inline. */
type Dispatch = 'queued' | 'inline' | 'again';

/** @param isResumed its wait is over */
export type StepExecutor = (unit: Unit, isResumed: boolean) => Promise<UnitResult>;

/** For people: which step, and by what. */
export function summaryOf({ step, item }: Unit): string {
  return `${step.id}${item === 0 ? '' : ` [${item}]`} → ${step.capability}`;
}

export function createStepExecutor(dependencies: StepExecutorDependencies): StepExecutor {
  const { input, done: noteDone, mayRunInline } = dependencies;
  /** Steps that were executed with one before them, by id. */
  const followed = new Map<string, StepActivityDone | null>();

  const succeed = (unit: Unit, { followed: others = [], ...done }: StepActivityDone, isInline: boolean) => {
    for (const { step_id, done: other } of others) followed.set(step_id, other);
    noteDone(unit, { ...done, endpoint: done.endpoint ?? '' }, isInline);
    return { state: 'succeeded' } as const;
  };

  const executeOnce = (unit: Unit, isResumed: boolean, how: Dispatch): Promise<UnitResult> => {
    const escalates = unit.step.escalates === true;
    const work = how === 'inline' ? inlineActivity(unit) : queuedActivity(input, unit);
    return work(requestOf(dependencies, unit, { isResumed, escalates, how })).then(
      (result): UnitEnd | UnitWaiting => {
        if ('waiting' in result) return toWaits(result.waiting);
        if ('skipped' in result) return { state: 'skipped' };
        return succeed(unit, result, how === 'inline');
      },
      (error: unknown) => {
        // What would have to be tried again is tried where it holds up nobody.
        if (how === 'inline' && mayBeRetried(error)) return executeOnce(unit, isResumed, 'again');
        return endFailed(dependencies, unit, { thrown: error, escalates });
      },
    );
  };
  return (unit, isResumed) => {
    const done = unit.item === 0 ? followed.get(unit.step.id) : undefined;
    followed.delete(unit.step.id);
    if (done === undefined || isResumed) {
      return executeOnce(unit, isResumed, mayRunInline(unit) ? 'inline' : 'queued');
    }
    return done === null ? executeOnce(unit, false, 'again') : Promise.resolve(succeed(unit, done, true));
  };
}

function requestOf(
  { input, budgetVersion, followers }: StepExecutorDependencies,
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

function toWaits({
  awaiting,
  until,
  ref,
}: Extract<StepActivityResult, { waiting: unknown }>['waiting']): UnitWaiting {
  return {
    state: 'waiting',
    wait: {
      awaiting,
      until: until === null ? null : Date.parse(until),
      ref: ref === undefined ? null : { ...ref },
    },
  };
}

/** Codes of ends that no attempt has written. */
const decidedHere: ReadonlySet<string> = new Set(['step_timeout', 'internal', 'not_found']);

async function endFailed(
  { recorder, failed, escalated }: StepExecutorDependencies,
  unit: Unit,
  { thrown, escalates }: { readonly thrown: unknown; readonly escalates: boolean },
): Promise<UnitResult> {
  const end = endOf(thrown, unit.step);
  const place = escalates ? ladderOf(thrown) : undefined;
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
