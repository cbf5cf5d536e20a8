import { noTelemetry } from '@capstan/core/telemetry/telemetry';
import type { StepEnd } from '@capstan/core/workflow-payloads';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import type { WorkerCtx } from '../context.ts';
import { createCachedCalls } from '../parts/cache/cached-calls.ts';
import { CalledOffSteps } from '../parts/calls/called-off-steps.ts';
import { createInFlightSteps } from '../parts/calls/in-flight-steps.ts';
import { openForStep } from '../use-cases/escalation/ladder/opening.ts';
import { createSharedContext } from './shared-context.ts';

/** Makes the context of the activities. */
export async function createWorkerRuntime(config: Config, logger: Logger, telemetry = noTelemetry) {
  const { ctx: common, parts } = await createSharedContext(config, logger, telemetry);
  const resultCache = parts.add(createCachedCalls(common));
  const inFlightSteps = parts.add(createInFlightSteps<StepEnd>());
  const ctx: WorkerCtx = {
    ...common,
    inFlightSteps,
    calledOff: parts.add(new CalledOffSteps(common)),
    resultCache,
    openForStep: (failed) => openForStep(common, failed),
    transitions: new Map(),
  };
  await parts.start();
  return { ctx, retire: (graceMs: number) => parts.retire(graceMs), close: () => parts.close() };
}
