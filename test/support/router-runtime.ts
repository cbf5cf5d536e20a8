import type { Logger } from 'pino';
import type { Config } from '../../src/config.ts';
import { createFoundation } from '../../src/runtime/foundation.ts';
import { createRouter } from '../../src/runtime/router.ts';

/** A router and nothing else. */
export async function createRouterRuntime(config: Config, logger: Logger) {
  const foundation = await createFoundation(config, logger);
  const router = createRouter(config, logger, foundation);
  await router.start();
  return {
    callCapability: router.callCapability,
    fleet: router.fleet,
    registry: foundation.registry,
    close: async (): Promise<void> => {
      await router.close();
      await foundation.close();
    },
  };
}
