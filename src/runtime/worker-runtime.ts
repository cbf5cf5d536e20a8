import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { noTelemetry } from '../core/telemetry/telemetry.ts';
import { createCachedCalls } from '../services/cache/cached-calls.ts';
import type { WorkerCtx } from '../services/context.ts';
import { openForStep } from '../services/escalation/ladder/opening.ts';
import type { StepEnd } from '../services/steps/execution.ts';
import { createInFlightSteps } from '../services/steps/in-flight-steps.ts';
import { createFoundation } from './foundation.ts';

/** The context of the activities. */
export async function createWorkerRuntime(config: Config, logger: Logger, telemetry = noTelemetry) {
  const foundation = await createFoundation(config, logger, telemetry);
  const { ctx: common } = foundation;
  const inFlightSteps = createInFlightSteps<StepEnd>();
  const resultCache = createCachedCalls(common);
  const ctx: WorkerCtx = {
    ...common,
    inFlightSteps,
    resultCache,
    openForStep,
    transitions: new Map(),
  };
  await foundation.start();
  return {
    ctx,
    /** Short steps are left to other workers from now on. */
    retire: inFlightSteps.retire,
    /** Calls that end from now on wait for the database some seconds, not longer. */
    finish: (): void => {
      inFlightSteps.abandon();
      foundation.finish();
    },
    close: async (): Promise<void> => {
      await inFlightSteps.settled();
      resultCache.close();
      await foundation.close();
    },
  };
}
