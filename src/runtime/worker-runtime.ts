import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { noTelemetry } from '../core/telemetry/telemetry.ts';
import type { CancelRunRequest } from '../core/workflow-payloads.ts';
import { createCachedCalls } from '../services/cache/cached-calls.ts';
import type { Ctx } from '../services/context.ts';
import { applyDecision } from '../services/escalation/ladder/decision.ts';
import { type LadderService, stopLadder } from '../services/escalation/ladder/ladder-service.ts';
import { openForStep } from '../services/escalation/ladder/opening.ts';
import { advanceLadder, type LadderCtx } from '../services/escalation/ladder/transition.ts';
import { type CloseDependencies, type CloseRun, createCloseRun } from '../services/runs/closing.ts';
import { createSubmitOriginatedRun } from '../services/runs/submission.ts';
import { cancelScheduledRun, createSubmitScheduledRun } from '../services/schedules/scheduled-runs.ts';
import { createDecideSteps } from '../services/steps/conditions.ts';
import {
  createExecuteRevision,
  createExecuteStep,
  type ExecuteDependencies,
  type ExecuteRevision,
  type StepEnd,
} from '../services/steps/execution.ts';
import { createGoingCalls } from '../services/steps/in-flight-steps.ts';
import { createExecuteInline } from '../services/steps/inline.ts';
import { type ProgressReport, recordProgress } from '../services/steps/step-end.ts';
import { createSubmitSubRun } from '../services/steps/sub-run.ts';
import { createFoundation, createIntake, createMedia, createRouter } from './foundation.ts';

/** The services behind the activities. */
export async function createWorkerRuntime(config: Config, logger: Logger, telemetry = noTelemetry) {
  const foundation = await createFoundation(config, logger, telemetry);
  const { db, contexts, results } = foundation;
  const router = createRouter(config, logger, foundation);
  const { callCapability, fleet } = router;
  const intake = createIntake(foundation, { fleet, vet: foundation.vetter.vet });
  const { library: media } = await createMedia(config, db);
  const ctx: Ctx = { ...foundation, ...router, config, logger, media, definitions: intake.definitions };
  const { throughCache, close } = createCachedCalls(ctx);
  const steps = { db, contexts, results, callCapability, throughCache, telemetry };
  const escalations = createLadders(ctx, createExecuteRevision(steps));
  const running = createRunServices({ db, contexts, results, telemetry });
  const { going, ...executing } = createStepServices(
    { ...steps, media, openForStep: escalations.openForStep, submitSubRun: createSubmitSubRun(intake) },
    running.closeRun,
  );
  await router.start();
  return {
    services: {
      ...executing,
      escalations,
      ...running,
      submitScheduledRun: createSubmitScheduledRun({ db, createRun: createSubmitOriginatedRun(intake) }),
      cancelScheduledRun: (run: CancelRunRequest) => cancelScheduledRun(db, run),
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

function createLadders(parts: Ctx, executeRevision: ExecuteRevision): LadderService {
  const ctx: LadderCtx = { ...parts, executeRevision, transitions: new Map() };
  return {
    openForStep: (failed) => openForStep(ctx, failed),
    advance: (request) => advanceLadder(ctx, request),
    stop: (request) => stopLadder(ctx, request),
    applyDecision: (request) => applyDecision(ctx, request),
  };
}

function createStepServices(dependencies: Omit<ExecuteDependencies, 'going'>, closeRun: CloseRun) {
  const going = createGoingCalls<StepEnd>();
  const executeStep = createExecuteStep({ ...dependencies, going });
  return { going, executeStep, executeInline: createExecuteInline({ executeStep, going, closeRun }) };
}

function createRunServices(dependencies: CloseDependencies) {
  return {
    decideSteps: createDecideSteps(dependencies),
    recordProgress: (report: ProgressReport) => recordProgress(dependencies.db, report),
    closeRun: createCloseRun(dependencies),
  };
}
