import type { Logger } from 'pino';
import type { Config } from '../../src/config.ts';
import { createFoundation, createRouter } from '../../src/runtime/foundation.ts';
import { createCallService } from '../../src/services/calls/call-service.ts';
import { registryOf } from './registry.ts';

/** A router, with direct calls as the API offers them, and nothing else. */
export async function createRouterRuntime(config: Config, logger: Logger) {
  const foundation = await createFoundation(config, logger);
  const router = createRouter(config, logger, foundation);
  const { callCapability, fleet, validator } = router;
  const { ownMedia } = foundation;
  const calls = createCallService({ db: foundation.db, fleet, callCapability, logger });
  await router.start();
  return {
    callCapability,
    calls,
    fleet,
    validator,
    ownMedia,
    registry: registryOf({ ...foundation, config, logger }),
    close: async (): Promise<void> => {
      await calls.close();
      await router.close();
      await foundation.close();
    },
  };
}
