import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { noTelemetry } from '../core/telemetry/telemetry.ts';
import type { CancelRunRequest, ScheduledStart } from '../core/workflow-payloads.ts';
import { createCachedCalls } from '../services/cache/cached-calls.ts';
import type { Ctx } from '../services/context.ts';
import { createLadderService } from '../services/escalation/ladder/ladder-service.ts';
import { type CloseRun, closeRun, type RunClosing } from '../services/runs/closing.ts';
import { cancelScheduledRun, submitScheduledRun } from '../services/schedules/scheduled-runs.ts';
import { createDecideSteps } from '../services/steps/conditions.ts';
import {
  createExecuteRevision,
  createExecuteStep,
  type ExecuteDependencies,
  type StepEnd,
} from '../services/steps/execution.ts';
import { createGoingCalls } from '../services/steps/in-flight-steps.ts';
import { createExecuteInline } from '../services/steps/inline.ts';
import { type ProgressReport, recordProgress } from '../services/steps/step-end.ts';
import { createSubmitSubRun } from '../services/steps/sub-run.ts';
import { createFoundation, createMedia, createRouter } from './foundation.ts';

/** The services behind the activities. */
export async function createWorkerRuntime(config: Config, logger: Logger, telemetry = noTelemetry) {
  const foundation = await createFoundation(config, logger, telemetry);
  const { db, contexts, results } = foundation;
  const router = createRouter(config, logger, foundation);
  const { callCapability, fleet, validator } = router;
  const { library: media } = await createMedia(config, db);
  const ctx: Ctx = { ...foundation, ...router, config, logger, media };
  const { throughCache, close } = createCachedCalls({ ...foundation, ...router, media, logger });
  const steps = { db, contexts, results, callCapability, throughCache, telemetry };
  const executeRevision = createExecuteRevision(steps);
  const escalations = createLadderService({ ...steps, fleet, validator, executeRevision });
  const running = createRunServices(ctx);
  const { going, ...executing } = createStepServices(
    { ...steps, media, openForStep: escalations.openForStep, submitSubRun: createSubmitSubRun(ctx) },
    running.closeRun,
  );
  await router.start();
  return {
    services: {
      ...executing,
      escalations,
      ...running,
      submitScheduledRun: (start: ScheduledStart) => submitScheduledRun(ctx, start),
      cancelScheduledRun: (run: CancelRunRequest) => cancelScheduledRun(ctx, run),
    },
    /** Short steps are left to other workers from now on. */
    retire: going.retire,
    /** Calls that end from now on wait for the database some seconds, not longer. */
    finish: (): void => {
      going.abandon();
      router.finish();
    },
    close: async (): Promise<void> => {
      await going.settled();
      close();
      await router.close();
      await foundation.close();
    },
  };
}

function createStepServices(dependencies: Omit<ExecuteDependencies, 'going'>, closeRun: CloseRun) {
  const going = createGoingCalls<StepEnd>();
  const executeStep = createExecuteStep({ ...dependencies, going });
  return { going, executeStep, executeInline: createExecuteInline({ executeStep, going, closeRun }) };
}

function createRunServices(ctx: Ctx) {
  return {
    decideSteps: createDecideSteps(ctx),
    recordProgress: (report: ProgressReport) => recordProgress(ctx.db, report),
    closeRun: (closing: RunClosing) => closeRun(ctx, closing),
  };
}
