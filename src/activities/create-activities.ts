/** The side effects of a run, one thin function each. Types are few and stable: histories name them. */
import { ApplicationFailure, CancelledFailure, Context, log } from '@temporalio/activity';
import type {
  CancelRunRequest,
  LadderPosition,
  ScheduledStart,
  ScheduledSubmission,
} from '../core/workflow-payloads.ts';
import type { LadderService, StopRequest } from '../services/escalation/ladder/ladder-service.ts';
import type { Advanced } from '../services/escalation/ladder/stored-ladder.ts';
import type { AdvanceRequest } from '../services/escalation/ladder/transition.ts';
import type { CloseRun, RunClosing } from '../services/runs/closing.ts';
import type { DecideSteps } from '../services/steps/conditions.ts';
import type { ExecuteStep } from '../services/steps/execution.ts';
import type { ExecuteInline } from '../services/steps/inline.ts';
import type { ProgressReport } from '../services/steps/step-end.ts';
import { isHopeless, toApplicationFailure, whileBeating } from './failures.ts';
import { createInlineActivity, createStepActivity } from './step-activities.ts';

type Transition = Omit<AdvanceRequest, 'signal' | 'again'>;

/**
 * The transitions of a ladder as activities. All of them ask the one service; the type says in Temporal's Web UI what
 * happens. Repeated, each answers where the ladder stands.
 */
export function createLadderActivities(
  ladder: Omit<LadderService, 'openForStep'>,
  heartbeatIntervalMs: number,
) {
  const advance = (request: Transition): Promise<LadderPosition> =>
    whileBeating(heartbeatIntervalMs, async (signal, { info }) =>
      answer(await ladder.advance({ ...request, signal, again: info.attempt > 1 }), signal),
    );
  return {
    /** Executes the job or step at the ladder's level, and stores what became of it. */
    executeLevel: advance,
    /** Asks a level for advice. */
    advise: advance,
    /** Applies the decision of a review that is over, or its expiry. */
    reviewed: (request: { readonly review_id: string }): Promise<LadderPosition> =>
      whileBeating(heartbeatIntervalMs, async (signal) =>
        answer(await ladder.applyDecision(request), signal),
      ),
    /** Asks a person, because the time of the ladder is over. */
    openReview: (request: StopRequest): Promise<LadderPosition> =>
      whileBeating(heartbeatIntervalMs, async (signal) => answer(await ladder.stop(request), signal)),
  };
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

/**
 * The end of a run, insisted upon: a workflow that ended without it would leave a run open that nobody works on. An
 * output or an error that cannot be worked out or stored, however often it is tried, is left out, and the run has failed
 * instead; a part that is away is waited for without end.
 */
function withoutValues({ run_id, outcome, has_waited = false }: RunClosing): RunClosing {
  const message = 'the end of the run could not be worked out or stored; the log of the worker says why';
  const error = { code: 'internal', message };
  const end: Pick<RunClosing, 'outcome' | 'error'> =
    outcome === 'cancelled' ? { outcome, error: null } : { outcome: 'failed', error };
  return { run_id, ...end, has_waited };
}

export function createFinishRun(closeRun: CloseRun): CloseRun {
  return async (closing) => {
    try {
      return await closeRun(closing);
    } catch (fault) {
      if (!isHopeless(fault, Context.current().info.attempt)) throw toApplicationFailure(fault);
      log.error('a run ends without its output', { run_id: closing.run_id, fault });
    }
    try {
      return await closeRun(withoutValues(closing));
    } catch (fault) {
      throw toApplicationFailure(fault);
    }
  };
}

interface ActivityServices {
  readonly executeStep: ExecuteStep;
  readonly executeInline: ExecuteInline;
  readonly decideSteps: DecideSteps;
  readonly recordProgress: (report: ProgressReport) => Promise<void>;
  readonly closeRun: CloseRun;
  readonly escalations: Omit<LadderService, 'openForStep'>;
  readonly submitScheduledRun: (start: ScheduledStart) => Promise<ScheduledSubmission>;
  readonly cancelScheduledRun: (run: CancelRunRequest) => Promise<void>;
}

/** A fault of ours becomes a failure that Temporal retries, with its code as type. */
function translated<Argument, Result>(work: (argument: Argument) => Promise<Result>) {
  return (argument: Argument): Promise<Result> =>
    work(argument).catch((error: unknown) => {
      throw toApplicationFailure(error);
    });
}

/** As `translated`, for what holds up the whole run: what fails every time is told to the workflow in the end. */
function bounded<Argument, Result>(work: (argument: Argument) => Promise<Result>) {
  return (argument: Argument): Promise<Result> =>
    work(argument).catch((error: unknown) => {
      throw toApplicationFailure(error, isHopeless(error, Context.current().info.attempt));
    });
}

export function createActivities(
  services: ActivityServices,
  settings: { readonly heartbeatIntervalMs: number },
) {
  return {
    /** Makes one step happen, or answers what it waits for. Fails with the step's error, or in a way that asks to come again. */
    executeStep: createStepActivity(services.executeStep, settings.heartbeatIntervalMs),
    /** Makes short steps happen that are ready together, and those that follow them. */
    executeInline: createInlineActivity(services.executeInline),
    ...createLadderActivities(services.escalations, settings.heartbeatIntervalMs),
    /** Tells a ladder that nobody wants it any more. */
    stopEscalation: translated((request: StopRequest) => services.escalations.stop(request)),
    /** Works out whether steps happen, and how often. */
    decideSteps: bounded(services.decideSteps),
    /** Writes ends of steps that the workflow decided. */
    recordProgress: bounded(services.recordProgress),
    /** Closes the run's row. */
    finishRun: createFinishRun(services.closeRun),
    /** Takes the run of a start of a schedule, or says why there is none. */
    submitRun: translated(services.submitScheduledRun),
    /** Asks the run of a start of a schedule to stop. */
    cancelScheduledRun: translated(services.cancelScheduledRun),
  };
}

export type Activities = ReturnType<typeof createActivities>;
