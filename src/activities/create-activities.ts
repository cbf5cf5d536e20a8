/** The side effects of a run, one thin function each. Types are few and stable: histories name them. */
import type { LadderService } from '../services/escalation/ladder-service.ts';
import type { StopRequest } from '../services/escalation/stop-ladder.ts';
import type { CloseRun, RunClosing } from '../services/runs/close-run.ts';
import type { ExecuteStep } from '../services/steps/execute-step.ts';
import type { RecordStepEnd } from '../services/steps/record-step-end.ts';
import { createLadderActivities } from './climb-ladder.ts';
import { createExecuteStepActivity } from './execute-step.ts';
import { toApplicationFailure } from './failures.ts';

export interface ActivityServices {
  readonly executeStep: ExecuteStep;
  readonly recordStepEnd: RecordStepEnd;
  readonly closeRun: CloseRun;
  readonly escalations: Omit<LadderService, 'openForStep'>;
}

/** A fault of ours becomes a failure that Temporal retries, with its code as type. */
const translated =
  <Argument, Result>(work: (argument: Argument) => Promise<Result>) =>
  (argument: Argument): Promise<Result> =>
    work(argument).catch((error: unknown) => {
      throw toApplicationFailure(error);
    });

export const createActivities = (
  services: ActivityServices,
  settings: { readonly heartbeatIntervalMs: number },
) => ({
  /** Makes one step happen. Fails for good with the step's error, or in a way that asks to come again. */
  executeStep: createExecuteStepActivity(services.executeStep, settings.heartbeatIntervalMs),
  ...createLadderActivities(services.escalations, settings.heartbeatIntervalMs),
  /** Tells a ladder that nobody wants it any more. */
  stopEscalation: translated((request: StopRequest) => services.escalations.stop(request)),
  /** Writes an end of a step that the workflow decided. */
  recordProgress: translated(services.recordStepEnd),
  /** Closes the run's row. */
  finishRun: translated((closing: RunClosing) => services.closeRun(closing)),
});

export type Activities = ReturnType<typeof createActivities>;
