import type { Logger } from 'pino';
import type { Config } from '../../src/config.ts';
import { createAnswerKeeper } from '../../src/parts/calls/answer-keeper.ts';
import { createKeyRenewer, createOpenCalls } from '../../src/parts/calls/open-calls.ts';
import type { CallRequest } from '../../src/parts/calls/routed-call.ts';
import { createModelRuleBook } from '../../src/parts/model-rules.ts';
import { createSharedContext } from '../../src/processes/shared-context.ts';
import { callCapability } from '../../src/use-cases/routing/call.ts';
import { registryOf } from './registry.ts';

/** A router with direct calls, as the API offers them, and nothing else. */
export async function createRouterRuntime(config: Config, logger: Logger) {
  const { ctx, parts } = await createSharedContext(config, logger);
  const { db, fleet } = ctx;
  const answerKeeper = parts.add(createAnswerKeeper({ db, logger, config }));
  const keyRenewer = parts.add(createKeyRenewer({ db, logger }));
  const openCalls = parts.add(createOpenCalls());
  await parts.start();
  return {
    ctx,
    /** The context of direct calls. */
    calls: { ...ctx, logger, openCalls, keyRenewer, answerKeeper, modelRules: createModelRuleBook(db) },
    callCapability: (request: CallRequest) => callCapability(ctx, request),
    fleet,
    registry: registryOf(ctx),
    close: () => parts.close(),
  };
}
