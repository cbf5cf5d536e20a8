/**
 * Wires the work that no request waits for: deliveries from rows to Temporal, repairs and deletions by the clock;
 * and the same by hand, as `capstan purge` and `capstan recover` do it.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { type Logger, pino } from 'pino';
import type { WebhookSender } from '../clients/webhook-sender.ts';
import type { Config } from '../config.ts';
import type { Metrics } from '../core/telemetry/telemetry.ts';
import { connectDatabase, type Db } from '../db/connect.ts';
import { migrate } from '../db/migrate.ts';
import type { Adoption } from '../db/recovery.ts';
import type { PersonChecks } from '../services/access/person-session.ts';
import type { Outbox } from '../services/context.ts';
import { createEraseProjects } from '../services/erasure/erasure-service.ts';
import {
  createEscalationDelivery,
  createRestartForgottenLadders,
} from '../services/escalation/ladder/delivery.ts';
import { createDuties, createMaintenance, createPromptDuties } from '../services/maintenance.ts';
import type { MediaLibrary } from '../services/media/media-library.ts';
import { createBudgetKeeper } from '../services/money/budget-keeper.ts';
import {
  type RecoverOptions,
  type RecoveryFindings,
  type RecoveryReport,
  recover,
} from '../services/recovery/recover.ts';
import { type ProbingCtx, probeDueInstances } from '../services/registry/vetting.ts';
import { type PurgeOptions, purge, type Retention } from '../services/retention/purge.ts';
import { createPurgeExport, type PurgeCounts, type PurgeExport } from '../services/retention/purge-pass.ts';
import { createReviewDelivery } from '../services/reviews/delivery.ts';
import { createRunDelivery } from '../services/runs/delivery.ts';
import { createDueWork, watchCapabilities } from '../services/runs/due-work.ts';
import { createReconcileRuns, createRestartForgottenRuns } from '../services/runs/repair.ts';
import { createRestartForgottenSchedules, createScheduleDelivery } from '../services/schedules/delivery.ts';
import { exportSharedGauges } from '../services/telemetry/shared-gauges.ts';
import { linkBelow } from '../services/web-links.ts';
import { createWebhookDelivery } from '../services/webhooks/delivery.ts';
import { consoleUrlOf, createMedia, createTemporal, publicUrlOf, type Temporal } from './foundation.ts';

type RetentionSettings = Pick<
  Config,
  'RUN_RETENTION_DAYS' | 'CHOICE_RETENTION_DAYS' | 'LEDGER_RETENTION_DAYS'
>;

function toDays(setting: 'never' | number): number | null {
  return setting === 'never' ? null : setting;
}

function retentionOf(config: RetentionSettings): Retention {
  return {
    runDays: toDays(config.RUN_RETENTION_DAYS),
    choiceDays: toDays(config.CHOICE_RETENTION_DAYS),
    bookDays: toDays(config.LEDGER_RETENTION_DAYS),
  };
}

function exportTo(folder: string | undefined): Promise<PurgeExport | null> {
  return folder === undefined ? Promise.resolve(null) : createPurgeExport(folder);
}

/** Of a round of maintenance: two hundred thousand runs. What is left is for the next. */
const batchesOfRound = 200;

interface DutyTools {
  readonly db: Db;
  readonly media: Pick<MediaLibrary, 'deleteJob'>;
  readonly logger: Logger;
}

/** @returns what maintenance does by the clock */
function createPurgeDuty(config: Config, { db, media, logger }: DutyTools) {
  return async (isStopping: () => boolean): Promise<number> => {
    const options: PurgeOptions = { db, media, retention: retentionOf(config), mostBatches: batchesOfRound };
    const copy = await exportTo(config.PURGE_EXPORT_DIR);
    const counts = await purge({ ...options, exportTo: copy, isStopping });
    const rows = Object.values(counts).reduce((sum, count) => sum + count, 0);
    if (rows > 0) logger.info({ counts }, 'deleted what was older than it is kept');
    return rows;
  };
}

/** A statement may take a minute: nobody waits for the one who deletes by hand. */
const statementMs = 60_000;

/** Everything that is too old, at once, also where no server can start: the schema is taken as it is. */
export async function purgeByHand(
  config: Config,
  { exportDir, isTrial }: { readonly exportDir: string | undefined; readonly isTrial: boolean },
): Promise<PurgeCounts> {
  const db = connectDatabase(config.DATABASE_URL, 4, statementMs);
  try {
    const { library: media } = await createMedia(config, db);
    const copy = isTrial ? null : await exportTo(exportDir);
    return await purge({ db, media, retention: retentionOf(config), isTrial, exportTo: copy });
  } finally {
    await db.destroy();
  }
}

interface OutboxTools extends Temporal {
  readonly db: Db;
  readonly logger: Logger;
  /** The API's address, known once it listens. */
  readonly publicUrl: () => string;
  readonly consoleUrl: () => string;
}

export interface RunningOutbox extends Outbox {
  /** Resolves when no delivery is under way. */
  readonly settled: () => Promise<void>;
}

/** What carries rows to Temporal: at once after a request, and again from maintenance until it has arrived. */
export function createOutbox(config: Config, tools: OutboxTools): RunningOutbox {
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

interface KeepingTools extends ProbingCtx, Pick<OutboxTools, 'workflows' | 'schedules'> {
  readonly media: Pick<MediaLibrary, 'deleteJob' | 'directUploadMs' | 'sweep'>;
  readonly outbox: Outbox;
  readonly webhookSender: WebhookSender;
  readonly metrics: Metrics;
  /** Null: no provider is configured. */
  readonly personChecks: PersonChecks | null;
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
  const { db, workflows, logger, media, outbox, webhookSender, metrics, personChecks } = tools;
  const sumsDb = connectDatabase(config.DATABASE_URL, 1, sumsMs);
  const webhooks = createWebhookDelivery({ db, sender: webhookSender });
  const work = {
    db,
    delivery: outbox.runs,
    escalations: outbox.escalations,
    reviews: outbox.reviews,
    schedules: outbox.schedules,
    registry: { probeDue: (limit: number) => probeDueInstances(tools, limit) },
    dueWork: createDueWork({ db, workflows, delivery: outbox.runs, logger }),
    reconcileRuns: createReconcileRuns({ db, workflows, logger }),
    ...createRestarts(tools),
    watchCapabilities: () => watchCapabilities(db),
    budgets: createBudgetKeeper({ db, sumsDb, logger, metrics }),
    webhooks,
    media,
    purgeOld: createPurgeDuty(config, { db, media, logger }),
    eraseProjects: createEraseProjects({ db, workflows, schedules: tools.schedules, media, logger }),
    recheckPersons: config.OIDC_RECHECK_S === 0 ? undefined : personChecks?.begin,
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

interface OtherCluster {
  /** What was brought below the transactions of this cluster; null: the database did not come from another one. */
  readonly other_cluster: Adoption | null;
}

export type WholeFindings = OtherCluster & RecoveryFindings;
export type WholeRecovery = OtherCluster & RecoveryReport;
export type RecoveryOptions = RecoverOptions<WholeFindings>;

/** The database first, then what Temporal lacks. */
export async function recoverFromRestore(
  config: Config,
  { restartsAll, keyActs, onFound }: RecoveryOptions,
): Promise<WholeRecovery> {
  const other_cluster = await migrate(config.DATABASE_URL);
  const db = connectDatabase(config.DATABASE_URL, config.DATABASE_POOL, statementMs);
  const temporal = createTemporal(config);
  const { workflows, schedules, registerSearchAttributes } = temporal;
  const logger = pino({ level: 'silent' });
  const publicUrl = (): string => publicUrlOf(config);
  const consoleUrl = (): string => consoleUrlOf(config, publicUrl());
  const outbox = createOutbox(config, { ...temporal, db, logger, publicUrl, consoleUrl });
  const common = { db, workflows, schedules, logger };
  try {
    await temporal.answers();
    const report = await recover(
      {
        ...common,
        delivery: outbox.runs,
        restartLadders: createRestartForgottenLadders({ ...common, delivery: outbox.escalations }),
        restartSchedules: createRestartForgottenSchedules({ ...common, delivery: outbox.schedules }),
        registerSearchAttributes,
        pause: sleep,
      },
      { restartsAll, keyActs, onFound: (findings) => onFound({ other_cluster, ...findings }) },
    );
    await outbox.settled();
    return { other_cluster, ...report };
  } finally {
    await temporal.close();
    await db.destroy();
  }
}
