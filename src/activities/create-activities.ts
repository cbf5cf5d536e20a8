/** The side effects of a run, one thin function each. Types are few and stable: histories name them. */
import { Context } from '@temporalio/activity';
import type { LadderService } from '../services/escalation/ladder/ladder-service.ts';
import type { StopRequest } from '../services/escalation/ladder/stop-ladder.ts';
import type { CloseRun } from '../services/runs/close-run.ts';
import type { CancelScheduledRun } from '../services/schedules/cancel-scheduled-run.ts';
import type { SubmitScheduledRun } from '../services/schedules/submit-scheduled-run.ts';
import type { DecideSteps } from '../services/steps/decide-steps.ts';
import type { ExecuteInline } from '../services/steps/execute-inline.ts';
import type { ExecuteStep } from '../services/steps/execute-step.ts';
import type { RecordProgress } from '../services/steps/record-progress.ts';
import { isHopeless, toApplicationFailure } from './failures.ts';
import { createFinishRun } from './finish-run.ts';
import { createInlineActivity } from './inline-activity.ts';
import { createLadderActivities } from './ladder-activities.ts';
import { createStepActivity } from './step-activity.ts';

export interface ActivityServices {
  readonly executeStep: ExecuteStep;
  readonly executeInline: ExecuteInline;
  readonly decideSteps: DecideSteps;
  readonly recordProgress: RecordProgress;
  readonly closeRun: CloseRun;
  readonly escalations: Omit<LadderService, 'openForStep'>;
  readonly submitScheduledRun: SubmitScheduledRun;
  readonly cancelScheduledRun: CancelScheduledRun;
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
