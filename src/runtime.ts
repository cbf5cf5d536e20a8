/**
 * The composition root: configuration becomes connections, connections become services. Nothing else wires, and
 * nothing else closes.
 */
import { type Logger, pino } from 'pino';
import { createAddressPolicy } from './clients/address-policy.ts';
import { createCapabilityClient } from './clients/capability-http.ts';
import { createCapabilityProbe } from './clients/capability-probe.ts';
import { createDialGuard, type DialGuard } from './clients/guarded-dial.ts';
import { createMediaStore } from './clients/media/create-media-store.ts';
import { findOwnListeners } from './clients/own-listeners.ts';
import { createBoundedCalls } from './clients/temporal/bounded-calls.ts';
import { connectTemporal, readTemporalAddress } from './clients/temporal/connect.ts';
import { createRunWorkflows } from './clients/temporal/run-workflows.ts';
import { createSchedules } from './clients/temporal/schedules.ts';
import type { Config } from './config.ts';
import { type Claim, renewLeases } from './db/attempt/attempt.ts';
import { connectDatabase, type Db } from './db/connect.ts';
import { migrate } from './db/migrate.ts';
import { createSchemaVetter } from './schemas/schema-vetter.ts';
import { createAccessService } from './services/access/access-service.ts';
import { createAuditService } from './services/access/audit-service.ts';
import { createCallService } from './services/calls/call-service.ts';
import { createHoldKeeper } from './services/delivery/lease-renewer.ts';
import { createEscalationService } from './services/escalation/escalation-service.ts';
import { createEscalationDelivery } from './services/escalation/ladder/deliver-escalation.ts';
import { createLadderService } from './services/escalation/ladder/ladder-service.ts';
import { createHealthService } from './services/health/health-service.ts';
import { createJobService } from './services/jobs/job-service.ts';
import { createDuties, createPromptDuties } from './services/maintenance/duties.ts';
import { createMaintenance } from './services/maintenance/maintenance.ts';
import { createBudgetKeeper } from './services/money/budget-keeper.ts';
import { createMoneyService } from './services/money/money-service.ts';
import { createAliasService } from './services/pipelines/alias-service.ts';
import type { CheckTools } from './services/pipelines/definition-checks.ts';
import { createPipelineService } from './services/pipelines/pipeline-service.ts';
import { createPlanService } from './services/plans/plan-service.ts';
import { createRegistryService, type RegistryService } from './services/registry/registry-service.ts';
import { createSchemaValidator } from './services/registry/schema-validator.ts';
import { createSpeedRecorder } from './services/registry/speed-recorder.ts';
import { createReviewDelivery } from './services/reviews/deliver-review.ts';
import { createCheckDecision } from './services/reviews/review-input.ts';
import { createReviewService } from './services/reviews/review-service.ts';
import { createAttemptWriter } from './services/routing/attempt-writer.ts';
import { createBreakers } from './services/routing/breakers.ts';
import { createCallCapability } from './services/routing/call-capability.ts';
import { createDecisionService } from './services/routing/decision-service.ts';
import { createFleetPoller } from './services/routing/fleet/fleet-poller.ts';
import { createRunContexts } from './services/run-data/run-context.ts';
import { createStepResults } from './services/run-data/step-results.ts';
import { createCloseRun } from './services/runs/close-run.ts';
import { createRunDelivery } from './services/runs/deliver-run.ts';
import { createDueWork } from './services/runs/due-work.ts';
import { createEventFeed } from './services/runs/event-feed.ts';
import { createKnownDefinitions } from './services/runs/known-definitions.ts';
import { createReconcileRuns } from './services/runs/reconcile-runs.ts';
import { createRerunRun } from './services/runs/rerun-run.ts';
import { createRunService } from './services/runs/run-service.ts';
import { createSubmitOriginatedRun } from './services/runs/submit-originated-run.ts';
import { createSubmitRun, createSubmitRuns } from './services/runs/submit-run.ts';
import { createWatchCapabilities } from './services/runs/watch-capabilities.ts';
import { createCancelScheduledRun } from './services/schedules/cancel-scheduled-run.ts';
import { createScheduleDelivery } from './services/schedules/deliver-schedule.ts';
import { createScheduleService } from './services/schedules/schedule-service.ts';
import { createSubmitScheduledRun } from './services/schedules/submit-scheduled-run.ts';
import { createSkillService } from './services/skills/skill-service.ts';
import { createDecideSteps } from './services/steps/decide-steps.ts';
import { createExecuteRevision, createExecuteStep } from './services/steps/execute-step.ts';
import { createRecordProgress } from './services/steps/record-progress.ts';
import { createSubmitSubRun } from './services/steps/submit-sub-run.ts';

const answerLimitBytes = 16 * 1_048_576;
const pollMs = 250;

export function createLogger(config: Config, process: string): Logger {
  return pino({ level: config.LOG_LEVEL, base: { process } });
}

/** Where instances may be. */
function createPolicy(config: Config) {
  return createAddressPolicy({
    allowedCidrs: config.ALLOWED_CIDRS,
    allowsLoopback: config.CAPSTAN_MODE === 'development',
    ownListeners: findOwnListeners([
      config.DATABASE_URL,
      `temporal://${readTemporalAddress()}`,
      config.TEMPORAL_UI_URL,
      `http://${config.HOST.includes(':') ? `[${config.HOST}]` : config.HOST}:${config.PORT}`,
      config.PUBLIC_URL,
    ]),
  });
}

/** What both processes stand on: the database and what is built from it alone. */
async function createFoundation(config: Config, logger: Logger) {
  await migrate(config.DATABASE_URL);
  const db = connectDatabase(config.DATABASE_URL, config.DATABASE_POOL);
  const policy = createPolicy(config);
  const guard = createDialGuard(policy);
  const probe = createCapabilityProbe({ guard, deadlineMs: config.PROBE_TIMEOUT_MS });
  const vetter = createSchemaVetter();
  const contexts = createRunContexts(db);
  const results = createStepResults(db);
  const registry = createRegistryService({ db, probe, logger, policy, vetter });
  return {
    db,
    guard,
    contexts,
    results,
    registry,
    vetter,
    close: async (): Promise<void> => {
      await registry.close();
      await probe.close();
      await vetter.close();
      await db.destroy();
    },
  };
}

/** What takes runs, in both processes: requests in the server, steps and schedules in the worker. */
function createIntake(db: Db, tools: CheckTools) {
  const pipelines = createPipelineService(db, tools);
  const definitions = createKnownDefinitions({ db, pipelines });
  return { db, pipelines, definitions, checkForRun: pipelines.checkForRun };
}

/** What makes routed calls, in both processes. */
function createRouter(
  config: Config,
  logger: Logger,
  { db, guard, registry }: { readonly db: Db; readonly guard: DialGuard; readonly registry: RegistryService },
) {
  const client = createCapabilityClient({ guard, answerLimitBytes, livenessIntervalMs: config.LIVENESS_MS });
  const fleet = createFleetPoller({ db, intervalMs: pollMs, logger });
  const speed = createSpeedRecorder({ db, logger });
  const { LEASE_MS: leaseMs } = config;
  const leases = createHoldKeeper<Claim>({
    renew: (held) => renewLeases(db, held, leaseMs),
    idOf: ({ attempt_id }) => attempt_id,
    intervalMs: leaseMs / 3,
    retryMs: leaseMs / 30,
    logger,
  });
  const validator = createSchemaValidator({ db });
  const breakers = createBreakers({ db, logger });
  const attemptWriter = createAttemptWriter(db);
  const callCapability = createCallCapability({
    client,
    fleet,
    registry,
    validator,
    speed,
    leases,
    breakers,
    attemptWriter,
    leaseMs,
    logger,
  });
  return {
    callCapability,
    fleet,
    validator,
    start: () => fleet.start(),
    close: async (): Promise<void> => {
      await fleet.stop();
      leases.stop();
      await Promise.all([attemptWriter.settled(), speed.stop(), breakers.settled(), client.close()]);
    },
  };
}

/** The services behind the activities. */
export async function createWorkerRuntime(config: Config, logger: Logger) {
  const foundation = await createFoundation(config, logger);
  const { db, contexts, results } = foundation;
  const router = createRouter(config, logger, foundation);
  const { callCapability, fleet, validator } = router;
  const steps = { db, contexts, results, callCapability };
  const intake = createIntake(db, { fleet, vet: foundation.vetter.vet });
  const escalations = createLadderService({
    db,
    contexts,
    fleet,
    validator,
    callCapability,
    executeRevision: createExecuteRevision(steps),
  });
  await router.start();
  return {
    services: {
      executeStep: createExecuteStep({
        ...steps,
        openForStep: escalations.openForStep,
        submitSubRun: createSubmitSubRun(intake),
      }),
      escalations,
      decideSteps: createDecideSteps({ db, contexts, results }),
      recordProgress: createRecordProgress(db),
      closeRun: createCloseRun({ db, contexts, results }),
      submitScheduledRun: createSubmitScheduledRun({ db, createRun: createSubmitOriginatedRun(intake) }),
      cancelScheduledRun: createCancelScheduledRun(db),
    },
    close: async (): Promise<void> => {
      await router.close();
      await foundation.close();
    },
  };
}

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

/** The services behind the API. @param publicUrl the API's address, known once it listens */
export async function createServerRuntime(config: Config, logger: Logger, publicUrl: () => string) {
  const foundation = await createFoundation(config, logger);
  const { db, contexts, results, registry } = foundation;
  const router = createRouter(config, logger, foundation);
  const { fleet, validator, callCapability } = router;
  const calls = createCallService({ db, fleet, callCapability, logger });
  const temporal = await connectTemporal();
  const bounded = createBoundedCalls(temporal);
  const workflows = createRunWorkflows(temporal, config.TASK_QUEUE, bounded);
  const media = createMediaStore(config.MEDIA_URL);
  const jobs = createJobService(db, media);
  const intake = createIntake(db, { fleet, vet: foundation.vetter.vet });
  const { pipelines, definitions } = intake;
  const delivery = createRunDelivery({
    db,
    workflows,
    heartbeatTimeoutMs: config.HEARTBEAT_TIMEOUT_MS,
    engineVersion: config.ENGINE_VERSION,
    historyEvents: config.HISTORY_EVENTS,
    publicUrl,
    logger,
  });
  const starts = createEscalationDelivery({
    db,
    workflows,
    heartbeatTimeoutMs: config.HEARTBEAT_TIMEOUT_MS,
    publicUrl,
    logger,
  });
  const escalations = createEscalationService({
    db,
    contexts,
    fleet,
    validator,
    callCapability,
    logger,
    vet: foundation.vetter.vet,
    startSoon: starts.startSoon,
  });
  const reviewDelivery = createReviewDelivery({ db, workflows, logger });
  const checkDecision = createCheckDecision({ db, fleet, validator, contexts });
  const events = createEventFeed({ db, intervalMs: pollMs, logger });
  const schedules = createSchedules(temporal, config.TASK_QUEUE, bounded);
  const scheduleDelivery = createScheduleDelivery({ db, schedules, logger });
  const work = {
    db,
    delivery,
    escalations: starts,
    reviews: reviewDelivery,
    schedules: scheduleDelivery,
    registry,
    dueWork: createDueWork({ db, workflows, delivery, logger }),
    reconcileRuns: createReconcileRuns({ db, workflows, logger }),
    watchCapabilities: createWatchCapabilities(db),
    budgets: createBudgetKeeper({ db, logger }),
  };
  const maintenance = createMaintenance({
    db,
    duties: createDuties(work),
    promptDuties: createPromptDuties(work),
    intervalMs: config.MAINTENANCE_MS,
    logger,
  });
  await router.start();
  maintenance.start();
  return {
    services: {
      access: createAccessService(db, {
        keyEnvironment: config.CAPSTAN_MODE === 'production' ? 'live' : 'dev',
      }),
      audit: createAuditService(db),
      registry,
      calls,
      decisions: createDecisionService({ db, fleet, validator }),
      pipelines,
      plans: createPlanService({ ...intake, fleet, validator }),
      aliases: createAliasService(db),
      jobs,
      media,
      runs: createRunService({
        db,
        delivery,
        feed: events,
        contexts,
        results,
        submitRun: createSubmitRun(intake),
        submitRuns: createSubmitRuns(intake),
        reruns: createRerunRun({ ...intake, media }),
      }),
      schedules: createScheduleService({ db, schedules, delivery: scheduleDelivery, definitions }),
      escalations,
      reviews: createReviewService({ db, checkDecision, delivery: reviewDelivery }),
      skills: createSkillService(db),
      money: createMoneyService(db),
      health: createHealthService(db, workflows),
    },
    close: async (): Promise<void> => {
      await Promise.all([calls.close(), escalations.close()]);
      await maintenance.stop();
      events.stop();
      await Promise.all([
        delivery.settled(),
        starts.settled(),
        reviewDelivery.settled(),
        scheduleDelivery.settled(),
      ]);
      await router.close();
      await temporal.connection.close();
      await foundation.close();
    },
  };
}
