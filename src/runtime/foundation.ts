/**
 * The composition root stands in this folder: configuration becomes connections, connections become services. Nothing
 * else wires, and nothing else closes.
 */
import type { Logger } from 'pino';
import { createAddressPolicy } from '../clients/address-policy.ts';
import { createCapabilityProbe } from '../clients/capability-probe.ts';
import { createDialGuard } from '../clients/guarded-dial.ts';
import { findOwnListeners } from '../clients/own-listeners.ts';
import { readTemporalAddress } from '../clients/temporal/connect.ts';
import type { Config } from '../config.ts';
import { noTelemetry, type Telemetry } from '../core/telemetry/telemetry.ts';
import { connectDatabase, type Db } from '../db/connect.ts';
import { migrate } from '../db/migrate.ts';
import { createSchemaVetter } from '../schemas/schema-vetter.ts';
import { logAudits } from '../services/access/audit-service.ts';
import { createOwnMedia } from '../services/jobs/own-media.ts';
import type { CheckTools } from '../services/pipelines/definition-checks.ts';
import { createPipelineService } from '../services/pipelines/pipeline-service.ts';
import { createRegistryService } from '../services/registry/registry-service.ts';
import type { FleetPoller } from '../services/routing/fleet/fleet-poller.ts';
import { createRunContexts } from '../services/run-data/run-context.ts';
import { createStepResults } from '../services/run-data/step-results.ts';
import { createDecideDispatch } from '../services/runs/decide-dispatch.ts';
import { createKnownDefinitions } from '../services/runs/known-definitions.ts';
import { readPoolState } from '../unsupported/knex-connection.ts';
import { listeningUrlOf } from './addresses.ts';

/** Where instances may be. */
function createPolicy(config: Config) {
  return createAddressPolicy({
    allowedCidrs: config.ALLOWED_CIDRS,
    allowsLoopback: config.CAPSTAN_MODE === 'development',
    ownListeners: findOwnListeners([
      config.DATABASE_URL,
      `temporal://${readTemporalAddress()}`,
      config.TEMPORAL_UI_URL,
      listeningUrlOf(config),
      config.PUBLIC_URL,
    ]),
  });
}

function countConnections({ metrics }: Telemetry, db: Db): void {
  metrics.onScrape(() => {
    const states = Object.entries(readPoolState(db.client));
    metrics.replace(
      'database_pool_connections',
      states.map(([state, value]) => ({ labels: { state }, value })),
    );
  });
}

export type Foundation = Awaited<ReturnType<typeof createFoundation>>;

/** What both processes stand on: the database and what is built from it alone. */
export async function createFoundation(config: Config, logger: Logger, telemetry: Telemetry = noTelemetry) {
  await migrate(config.DATABASE_URL);
  const db = connectDatabase(config.DATABASE_URL, config.DATABASE_POOL);
  countConnections(telemetry, db);
  logAudits(db, logger);
  const policy = createPolicy(config);
  const guard = createDialGuard(policy);
  const probe = createCapabilityProbe({ guard, deadlineMs: config.PROBE_TIMEOUT_MS });
  const vetter = createSchemaVetter();
  const contexts = createRunContexts(db);
  const results = createStepResults(db);
  const registry = createRegistryService({
    db,
    probe,
    logger,
    policy,
    vetter,
    perProject: config.INSTANCES_PER_PROJECT,
  });
  const ownMedia = createOwnMedia(db);
  return {
    db,
    telemetry,
    ownMedia,
    policy,
    guard,
    contexts,
    results,
    registry,
    vetter,
    mostOpenRuns: config.OPEN_RUNS_PER_PROJECT,
    close: async (): Promise<void> => {
      await registry.close();
      await probe.close();
      await vetter.close();
      await db.destroy();
    },
  };
}

/** What takes runs, in both processes: requests in the server, steps and schedules in the worker. */
export function createIntake(
  {
    db,
    ownMedia,
    mostOpenRuns,
    telemetry,
  }: Pick<Foundation, 'db' | 'ownMedia' | 'mostOpenRuns' | 'telemetry'>,
  tools: CheckTools & { readonly fleet: Pick<FleetPoller, 'of'> },
) {
  const pipelines = createPipelineService(db, tools);
  const definitions = createKnownDefinitions({ db, pipelines });
  return {
    db,
    ownMedia,
    mostOpenRuns,
    telemetry,
    pipelines,
    definitions,
    checkForRun: pipelines.checkForRun,
    decideDispatch: createDecideDispatch(tools.fleet),
  };
}
