import type { Logger } from 'pino';
import type { WebhookSender } from '../clients/webhook-sender.ts';
import type { Config } from '../config.ts';
import type { Metrics } from '../core/telemetry/metrics.ts';
import { connectDatabase, type Db } from '../db/connect.ts';
import type { SignInService } from '../services/access/sign-in.ts';
import { createEraseProjects } from '../services/erasure/erase-projects.ts';
import { createEscalationDelivery } from '../services/escalation/ladder/deliver-escalation.ts';
import { createRestartForgottenLadders } from '../services/escalation/ladder/restart-forgotten-ladders.ts';
import { createDuties, createPromptDuties } from '../services/maintenance/duties.ts';
import { createMaintenance } from '../services/maintenance/maintenance.ts';
import type { MediaLibrary } from '../services/media/media-library.ts';
import { createBudgetKeeper } from '../services/money/budget-keeper.ts';
import type { RegistryService } from '../services/registry/registry-service.ts';
import { createReviewDelivery } from '../services/reviews/deliver-review.ts';
import { createRunDelivery } from '../services/runs/deliver-run.ts';
import { createDueWork } from '../services/runs/due-work.ts';
import { createReconcileRuns } from '../services/runs/reconcile-runs.ts';
import { createRestartForgottenRuns } from '../services/runs/restart-forgotten-runs.ts';
import { createWatchCapabilities } from '../services/runs/watch-capabilities.ts';
import { createScheduleDelivery } from '../services/schedules/deliver-schedule.ts';
import { createRestartForgottenSchedules } from '../services/schedules/restart-forgotten-schedules.ts';
import { exportSharedGauges } from '../services/telemetry/shared-gauges.ts';
import { linkBelow } from '../services/web-links.ts';
import { createWebhookDelivery } from '../services/webhooks/deliver-webhooks.ts';
import { createPurgeDuty } from './retention.ts';
import type { Temporal } from './temporal.ts';

interface OutboxTools extends Temporal {
  readonly db: Db;
  readonly logger: Logger;
  /** The API's address, known once it listens. */
  readonly publicUrl: () => string;
  readonly consoleUrl: () => string;
}

export type Outbox = ReturnType<typeof createOutbox>;

/** What carries rows to Temporal: at once after a request, and again from maintenance until it has arrived. */
export function createOutbox(config: Config, tools: OutboxTools) {
  const { db, workflows, schedules, payloadKey, logger, publicUrl, consoleUrl } = tools;
  const { HEARTBEAT_TIMEOUT_MS: heartbeatTimeoutMs, ENGINE_VERSION: engineVersion } = config;
  const runs = createRunDelivery({
    db,
    workflows,
    heartbeatTimeoutMs,
    engineVersion,
    historyEvents: config.HISTORY_EVENTS,
    urlOf: (runId) => linkBelow(consoleUrl(), `runs/${runId}`),
    logger,
  });
  const escalations = createEscalationDelivery({
    db,
    workflows,
    heartbeatTimeoutMs,
    engineVersion,
    publicUrl,
    logger,
  });
  const reviews = createReviewDelivery({ db, workflows, logger });
  const calendar = createScheduleDelivery({ db, schedules, payloadKey, logger });
  return {
    runs,
    escalations,
    reviews,
    schedules: calendar,
    settled: async (): Promise<void> => {
      await Promise.all([runs.settled(), escalations.settled(), reviews.settled(), calendar.settled()]);
    },
  };
}

interface KeepingTools extends Pick<OutboxTools, 'db' | 'workflows' | 'schedules' | 'logger'> {
  readonly media: Pick<MediaLibrary, 'deleteJob' | 'directUploadMs' | 'sweep'>;
  readonly registry: RegistryService;
  readonly outbox: Outbox;
  readonly webhookSender: WebhookSender;
  readonly metrics: Metrics;
  readonly signIn: SignInService | null;
}

/** What starts again that Temporal has forgotten. */
function createRestarts({ db, workflows, schedules, logger, outbox }: KeepingTools) {
  const common = { db, workflows, logger };
  return {
    restartForgottenRuns: createRestartForgottenRuns({ ...common, delivery: outbox.runs }),
    restartForgottenLadders: createRestartForgottenLadders({ ...common, delivery: outbox.escalations }),
    restartForgottenSchedules: createRestartForgottenSchedules({
      db,
      schedules,
      logger,
      delivery: outbox.schedules,
    }),
  };
}

/** What sums over days of calls may take: nobody waits for them. */
const sumsMs = 60_000;

/** What repairs rows and repeats deliveries, by the clock. */
export function createKeeping(config: Config, tools: KeepingTools) {
  const { db, workflows, logger, media, registry, outbox, webhookSender, metrics, signIn } = tools;
  const sumsDb = connectDatabase(config.DATABASE_URL, 1, sumsMs);
  const webhooks = createWebhookDelivery({ db, sender: webhookSender });
  const work = {
    db,
    delivery: outbox.runs,
    escalations: outbox.escalations,
    reviews: outbox.reviews,
    schedules: outbox.schedules,
    registry,
    dueWork: createDueWork({ db, workflows, delivery: outbox.runs, logger }),
    reconcileRuns: createReconcileRuns({ db, workflows, logger }),
    ...createRestarts(tools),
    watchCapabilities: createWatchCapabilities(db),
    budgets: createBudgetKeeper({ db, sumsDb, logger, metrics }),
    webhooks,
    media,
    purgeOld: createPurgeDuty(config, { db, media, logger }),
    eraseProjects: createEraseProjects({ db, workflows, schedules: tools.schedules, media, logger }),
    recheckPersons: config.OIDC_RECHECK_S === 0 ? undefined : signIn?.recheck,
  };
  const maintenance = createMaintenance({
    db,
    duties: createDuties(work),
    promptDuties: createPromptDuties(work),
    intervalMs: config.MAINTENANCE_MS,
    logger,
    metrics,
  });
  exportSharedGauges({ db, metrics, isHolder: maintenance.isHolder });
  return {
    start: maintenance.start,
    stop: async (): Promise<void> => {
      await maintenance.stop();
      await webhooks.stop();
      await sumsDb.destroy();
    },
  };
}
