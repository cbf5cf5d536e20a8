import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { noTelemetry } from '../core/telemetry/telemetry.ts';
import { createCachedCalls } from '../parts/cache/cached-calls.ts';
import type { WorkerCtx } from '../context.ts';
import { openForStep } from '../use-cases/escalation/ladder/opening.ts';
import type { StepEnd } from '../use-cases/steps/execution.ts';
import { createInFlightSteps } from '../parts/calls/in-flight-steps.ts';
import { createFoundation } from './foundation.ts';

/** Makes the context of the activities. */
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
    /** From now on, short steps are left to other workers. */
    retire: inFlightSteps.retire,
    /** From now on, calls that end wait for the database for some seconds at most. */
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
