/**
 * The side effects of a run: functions of the worker's context. Types are few and stable, because histories name them.
 */

import type {
  Advanced,
  CancelRunRequest,
  LadderPosition,
  ScheduledStart,
  ScheduledSubmission,
  StepEnd,
} from '@capstan/core/workflow-payloads';
import { ApplicationFailure, CancelledFailure, Context, log } from '@temporalio/activity';
import type { WorkerCtx } from '../context.ts';
import { applyDecision, type StopRequest, stopLadder } from '../use-cases/escalation/ladder/decision.ts';
import { type AdvanceRequest, advanceLadder } from '../use-cases/escalation/ladder/transition.ts';
import { type ClosedRun, type CloseRun, closeReported, type RunClosing } from '../use-cases/runs/closing.ts';
import { cancelScheduledRun, submitScheduledRun } from '../use-cases/schedules/scheduled-runs.ts';
import type { StepControl, StepRequest } from '../use-cases/steps/call.ts';
import {
  type AnswerRequest,
  type DecideRequest,
  decideSteps,
  judgeAnswer,
} from '../use-cases/steps/conditions.ts';
import { executeStep } from '../use-cases/steps/execution.ts';
import { executeInline, type InlineRequest } from '../use-cases/steps/inline.ts';
import { type JudgeRequest, judgeStoredRound } from '../use-cases/steps/rounds.ts';
import { type ProgressReport, recordProgress } from '../use-cases/steps/step-end.ts';
import { isHopeless, toApplicationFailure, whileBeating } from './failures.ts';
import { asInlineActivity, asStepActivity } from './step-activities.ts';

type Transition = Omit<AdvanceRequest, 'signal' | 'again'>;

/** Makes a transition of a ladder. Repeated, it returns the current position of the ladder. */
export function asLadderActivity(
  heartbeatIntervalMs: number,
  transition: (signal: AbortSignal, isAgain: boolean) => Promise<Advanced>,
): Promise<LadderPosition> {
  return whileBeating(heartbeatIntervalMs, async (signal, { info }) =>
    answer(await transition(signal, info.attempt > 1), signal),
  );
}

function answer({ delay_ms, ...place }: Advanced, signal: AbortSignal): LadderPosition {
  if (delay_ms === undefined) return place;
  if (signal.reason === 'cancelled') throw new CancelledFailure('the escalation was cancelled');
  throw ApplicationFailure.create({
    type: 'unavailable',
    message: `transition ${place.transition} is tried again in ${delay_ms} ms`,
    nextRetryDelay: delay_ms,
  });
}

function withoutValues({ run_id, outcome, has_waited = false }: RunClosing): RunClosing {
  const message = 'the end of the run could not be worked out or stored; the log of the worker says why';
  const error = { code: 'internal', message };
  const end: Pick<RunClosing, 'outcome' | 'error'> =
    outcome === 'cancelled' ? { outcome, error: null } : { outcome: 'failed', error };
  return { run_id, ...end, has_waited };
}

/**
 * Closes a run, and is retried until the run is closed: a workflow that ended without it would leave its run open. If
 * an output or an error repeatedly fails to be evaluated or stored, it is omitted and the run fails instead. While the
 * database is away, it retries without end.
 */
export async function asFinishActivity(closing: RunClosing, close: CloseRun): Promise<ClosedRun> {
  try {
    return await close(closing);
  } catch (fault) {
    if (!isHopeless(fault, Context.current().info.attempt)) throw toApplicationFailure(fault);
    log.error('a run ends without its output', { run_id: closing.run_id, fault });
  }
  try {
    return await close(withoutValues(closing));
  } catch (fault) {
    throw toApplicationFailure(fault);
  }
}

/** A fault of ours becomes a failure that Temporal retries, with its code as type. */
function translated<Result>(work: Promise<Result>): Promise<Result> {
  return work.catch((error: unknown) => {
    throw toApplicationFailure(error);
  });
}

/** Translates like `translated`, for work that the whole run waits for: the workflow sees a permanent fault. */
function bounded<Result>(work: Promise<Result>): Promise<Result> {
  return work.catch((error: unknown) => {
    throw toApplicationFailure(error, isHopeless(error, Context.current().info.attempt));
  });
}

/** The work that the whole run waits for. */
function createDecisions(ctx: WorkerCtx) {
  return {
    /** Decides whether steps happen, and how often. */
    decideSteps: (request: DecideRequest) => bounded(decideSteps(ctx, request)),
    /** Judges a round of a step with `repeat`, and stores what follows. */
    judgeRound: (request: JudgeRequest) => bounded(judgeStoredRound(ctx, request)),
    /** Judges whether the answer of an item counts for `enough`. */
    judgeAnswer: (request: AnswerRequest) => bounded(judgeAnswer(ctx, request)),
    /** Writes ends of steps that the workflow decided. */
    recordProgress: (report: ProgressReport) => bounded(recordProgress(ctx, report)),
  };
}

/** A step that may be called off learns that sooner than by its next heartbeat. */
function executeWatched(ctx: WorkerCtx, request: StepRequest, control: StepControl): Promise<StepEnd> {
  if (request.is_callable_off !== true) return executeStep(ctx, request, control);
  const { run_id, step_id, item = 0 } = request;
  return ctx.calledOff.watch({ run_id, step_id, item }, control.signal, (signal) =>
    executeStep(ctx, request, { ...control, signal }),
  );
}

export function createActivities(
  ctx: WorkerCtx,
  { heartbeatIntervalMs }: { readonly heartbeatIntervalMs: number },
) {
  /** All transitions of a ladder are one function; the activity type names the transition in Temporal's Web UI. */
  const advance = (request: Transition): Promise<LadderPosition> =>
    asLadderActivity(heartbeatIntervalMs, (signal, again) =>
      advanceLadder(ctx, { ...request, signal, again }),
    );
  return {
    /** Executes one step, or returns its wait. Fails with the step's error, or in a way that requests a retry. */
    executeStep: (request: StepRequest) =>
      asStepActivity(heartbeatIntervalMs, request, (control) => executeWatched(ctx, request, control)),
    /** Executes short steps that are ready together, and those that follow them. */
    executeInline: (request: InlineRequest) => asInlineActivity(request, () => executeInline(ctx, request)),
    /** Executes the job or step at the ladder's level, and stores the result. */
    executeLevel: advance,
    /** Asks a level for advice. */
    advise: advance,
    /** Applies the decision of a review that has ended, or its expiry. */
    reviewed: (request: { readonly review_id: string }): Promise<LadderPosition> =>
      asLadderActivity(heartbeatIntervalMs, () => applyDecision(ctx, request)),
    /** Opens a review, because the time of the ladder is over. */
    openReview: (request: StopRequest): Promise<LadderPosition> =>
      asLadderActivity(heartbeatIntervalMs, () => stopLadder(ctx, request)),
    /** Stops a ladder whose result is no longer wanted. */
    stopEscalation: (request: StopRequest) => translated(stopLadder(ctx, request)),
    ...createDecisions(ctx),
    /** Closes the run's row. */
    finishRun: (closing: RunClosing) => asFinishActivity(closing, (end) => closeReported(ctx, end)),
    /** Submits the run of a start of a schedule, or gives the reason why there is none. */
    submitRun: (start: ScheduledStart): Promise<ScheduledSubmission> =>
      translated(submitScheduledRun(ctx, start)),
    /** Cancels the run of a start of a schedule. */
    cancelScheduledRun: (run: CancelRunRequest) => translated(cancelScheduledRun(ctx, run)),
  };
}

export type Activities = ReturnType<typeof createActivities>;
