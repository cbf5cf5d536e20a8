import type { Logger } from 'pino';
import type { Config } from '../../src/config.ts';
import { createFoundation, createRouter } from '../../src/runtime/foundation.ts';
import { createKeyRenewer, createOpenCalls } from '../../src/services/calls/open-calls.ts';

/** A router, with direct calls as the API offers them, and nothing else. */
export async function createRouterRuntime(config: Config, logger: Logger) {
  const foundation = await createFoundation(config, logger);
  const router = createRouter(config, logger, foundation);
  const { callCapability, fleet, validator } = router;
  const { db, registry, ownMedia } = foundation;
  const [openCalls, keyRenewer] = [createOpenCalls(), createKeyRenewer({ db, logger })];
  await router.start();
  return {
    /** With what direct calls are made. */
    calls: { db, fleet, callCapability, logger, openCalls, keyRenewer },
    callCapability,
    fleet,
    validator,
    ownMedia,
    registry,
    close: async (): Promise<void> => {
      await openCalls.close();
      keyRenewer.stop();
      await router.close();
      await foundation.close();
    },
  };
}
