import type { Logger } from 'pino';
import type { Config } from '../../src/config.ts';
import { createFoundation } from '../../src/processes/foundation.ts';
import { createAnswerKeeper } from '../../src/parts/calls/answer-keeper.ts';
import { createKeyRenewer, createOpenCalls } from '../../src/parts/calls/open-calls.ts';
import { registryOf } from './registry.ts';

/** A router with direct calls, as the API offers them, and nothing else. */
export async function createRouterRuntime(config: Config, logger: Logger) {
  const foundation = await createFoundation(config, logger);
  const { ctx } = foundation;
  const { db, callCapability, fleet } = ctx;
  const answerKeeper = createAnswerKeeper({ db, logger, config });
  const [openCalls, keyRenewer] = [createOpenCalls(), createKeyRenewer({ db, logger })];
  await foundation.start();
  return {
    ctx,
    /** The context of direct calls. */
    calls: { ...ctx, logger, openCalls, keyRenewer, answerKeeper },
    callCapability,
    fleet,
    registry: registryOf(ctx),
    close: async (): Promise<void> => {
      await openCalls.close();
      keyRenewer.stop();
      await foundation.close();
    },
  };
}
