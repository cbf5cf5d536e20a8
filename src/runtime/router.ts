import type { Logger } from 'pino';
import { createCapabilityClient } from '../clients/capability-http.ts';
import type { DialGuard } from '../clients/guarded-dial.ts';
import type { Config } from '../config.ts';
import type { Telemetry } from '../core/telemetry/telemetry.ts';
import { type Claim, renewLeases } from '../db/attempt/attempt.ts';
import type { Db } from '../db/connect.ts';
import { createLeaseRenewer } from '../services/delivery/lease-renewer.ts';
import type { OwnMedia } from '../services/jobs/own-media.ts';
import type { RegistryService } from '../services/registry/registry-service.ts';
import { createSchemaValidator } from '../services/registry/schema-validator.ts';
import { createSpeedRecorder } from '../services/registry/speed-recorder.ts';
import { createAttemptWriter } from '../services/routing/attempt-writer.ts';
import { createBreakers } from '../services/routing/breakers.ts';
import { createCallRouter } from '../services/routing/call-capability.ts';
import { createFleetPoller } from '../services/routing/fleet/fleet-poller.ts';

const answerLimitBytes = 16 * 1_048_576;
/** Between two looks at what other processes wrote. */
const pollMs = 250;

interface RouterTools {
  readonly db: Db;
  readonly guard: DialGuard;
  readonly registry: RegistryService;
  readonly ownMedia: OwnMedia;
  readonly telemetry: Telemetry;
}

export type Router = ReturnType<typeof createRouter>;

function createLeases({ LEASE_MS: leaseMs }: Config, db: Db, logger: Logger) {
  return createLeaseRenewer<Claim>({
    renew: (held) => renewLeases(db, held, leaseMs),
    idOf: ({ attempt_id }) => attempt_id,
    intervalMs: leaseMs / 3,
    retryMs: leaseMs / 30,
    logger,
  });
}

/** What makes routed calls, in both processes. */
export function createRouter(config: Config, logger: Logger, tools: RouterTools) {
  const { db, guard } = tools;
  const client = createCapabilityClient({ guard, answerLimitBytes, livenessIntervalMs: config.LIVENESS_MS });
  const fleet = createFleetPoller({ db, intervalMs: pollMs, logger });
  const speed = createSpeedRecorder({ db, logger });
  const leases = createLeases(config, db, logger);
  const validator = createSchemaValidator({ db });
  const breakers = createBreakers({ db, logger });
  const attemptWriter = createAttemptWriter(db, logger);
  const { LEASE_MS: leaseMs } = config;
  const calls = createCallRouter({
    ...tools,
    client,
    fleet,
    validator,
    speed,
    leases,
    breakers,
    attemptWriter,
    leaseMs,
    transientTexts: config.TRANSIENT_TEXTS,
    logger,
  });
  return {
    callCapability: calls.callCapability,
    fleet,
    validator,
    start: () => fleet.start(),
    /** Calls that are ended now may wait for the database some seconds, not longer. */
    finish: attemptWriter.finish,
    close: async (): Promise<void> => {
      await calls.close();
      await fleet.stop();
      leases.stop();
      await Promise.all([attemptWriter.settled(), speed.stop(), breakers.settled(), client.close()]);
    },
  };
}
