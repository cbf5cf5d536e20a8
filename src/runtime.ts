/**
 * The composition root: configuration becomes connections, connections become services. Nothing else wires, and
 * nothing else closes.
 */
import { type Logger, pino } from 'pino';
import { createCapabilityClient } from './clients/capability-http.ts';
import { createCapabilityProbe } from './clients/capability-probe.ts';
import { createMediaStore } from './clients/media/create-media-store.ts';
import { connectTemporal } from './clients/temporal/connect.ts';
import { createRunWorkflows } from './clients/temporal/run-workflows.ts';
import type { Config } from './config.ts';
import { connectDatabase } from './db/connect.ts';
import { migrate } from './db/migrate.ts';
import { createAccessService } from './services/access/access-service.ts';
import { createHealthService } from './services/health/health-service.ts';
import { createJobService } from './services/jobs/job-service.ts';
import { createMaintenance } from './services/maintenance/maintenance.ts';
import { createPipelineService } from './services/pipelines/pipeline-service.ts';
import { createInstanceFeed } from './services/registry/instance-feed.ts';
import { createRegistryService } from './services/registry/registry-service.ts';
import { createSchemaValidator } from './services/registry/schema-validator.ts';
import { createSpeedRecorder } from './services/registry/speed-recorder.ts';
import { createCallCapability } from './services/routing/call-capability.ts';
import { createLeaseKeeper } from './services/routing/lease-keeper.ts';
import { createCloseRun } from './services/runs/close-run.ts';
import { createRunDelivery } from './services/runs/deliver-run.ts';
import { createEventFeed } from './services/runs/event-feed.ts';
import { createRunService } from './services/runs/run-service.ts';
import { createSubmitRun } from './services/runs/submit-run.ts';
import { createExecuteStep } from './services/steps/execute-step.ts';
import { createRecordStepEnd } from './services/steps/record-step-end.ts';
import { createRunContexts } from './services/steps/run-context.ts';
import { createStepResults } from './services/steps/step-results.ts';

const answerLimitBytes = 16 * 1_048_576;
const pollMs = 250;

export const createLogger = (config: Config, process: string): Logger =>
  pino({ level: config.LOG_LEVEL, base: { process } });

/** What both processes stand on: the database and what is built from it alone. */
const createFoundation = async (config: Config, logger: Logger) => {
  await migrate(config.DATABASE_URL);
  const db = connectDatabase(config.DATABASE_URL, config.DATABASE_POOL);
  const probe = createCapabilityProbe();
  const contexts = createRunContexts(db);
  const results = createStepResults(db);
  const registry = createRegistryService({ db, probe, logger, config });
  return { db, probe, contexts, results, registry };
};

/** The services behind the activities. */
export const createWorkerRuntime = async (config: Config, logger: Logger) => {
  const { db, probe, contexts, results, registry } = await createFoundation(config, logger);
  const client = createCapabilityClient({ answerLimitBytes, livenessIntervalMs: 10_000 });
  const feed = createInstanceFeed({ db, intervalMs: pollMs, logger });
  const speed = createSpeedRecorder({ db, logger });
  const leases = createLeaseKeeper({ db, leaseMs: config.LEASE_MS, logger });
  const validator = createSchemaValidator({ db });
  const callCapability = createCallCapability({
    db,
    client,
    feed,
    registry,
    validator,
    speed,
    leases,
    leaseMs: config.LEASE_MS,
    logger,
  });
  await feed.start();
  return {
    services: {
      executeStep: createExecuteStep({ db, contexts, results, callCapability }),
      recordStepEnd: createRecordStepEnd(db),
      closeRun: createCloseRun({ db, contexts, results }),
    },
    close: async (): Promise<void> => {
      await feed.stop();
      leases.stop();
      await speed.stop();
      await client.close();
      await registry.close();
      await probe.close();
      await db.destroy();
    },
  };
};

/** The services behind the API. @param publicUrl the API's address, known once it listens */
export const createServerRuntime = async (config: Config, logger: Logger, publicUrl: () => string) => {
  const { db, probe, contexts, results, registry } = await createFoundation(config, logger);
  const temporal = await connectTemporal();
  const workflows = createRunWorkflows(temporal, config.TASK_QUEUE);
  const media = createMediaStore(config.MEDIA_URL);
  const jobs = createJobService(db, media);
  const pipelines = createPipelineService(db);
  const delivery = createRunDelivery({
    db,
    workflows,
    heartbeatTimeoutMs: config.HEARTBEAT_TIMEOUT_MS,
    publicUrl,
    logger,
  });
  const events = createEventFeed({ db, intervalMs: pollMs, logger });
  const submitRun = createSubmitRun({ db, jobs, pipelines });
  const maintenance = createMaintenance({
    db,
    delivery,
    registry,
    intervalMs: config.MAINTENANCE_MS,
    logger,
  });
  maintenance.start();
  return {
    services: {
      access: createAccessService(db, {
        keyEnvironment: config.CAPSTAN_MODE === 'production' ? 'live' : 'dev',
      }),
      registry,
      pipelines,
      jobs,
      media,
      runs: createRunService({ db, submitRun, delivery, feed: events, contexts, results }),
      health: createHealthService(db, workflows),
    },
    close: async (): Promise<void> => {
      await maintenance.stop();
      events.stop();
      await delivery.settled();
      await registry.close();
      await probe.close();
      await temporal.connection.close();
      await db.destroy();
    },
  };
};
