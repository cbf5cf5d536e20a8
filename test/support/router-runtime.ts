import type { Logger } from 'pino';
import type { Config } from '../../src/config.ts';
import { createFoundation } from '../../src/runtime/foundation.ts';
import { createCallService } from '../../src/services/calls/call-service.ts';

/** A router, with direct calls as the API offers them, and nothing else. */
export async function createRouterRuntime(config: Config, logger: Logger) {
  const foundation = await createFoundation(config, logger);
  const { ctx } = foundation;
  const { db, callCapability, fleet, registry } = ctx;
  const calls = createCallService({ db, fleet, callCapability, logger });
  await foundation.start();
  return {
    ctx,
    callCapability,
    calls,
    fleet,
    registry,
    close: async (): Promise<void> => {
      await calls.close();
      await foundation.close();
    },
  };
}
