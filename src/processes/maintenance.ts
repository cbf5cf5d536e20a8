/**
 * Wires the work that no request waits for: retries of deliveries, repairs and scheduled deletions; and the same on
 * demand, for `capstan purge` and `capstan recover`.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { neverFrozen } from '@capstan/core/call/freezes';
import { pino } from 'pino';
import { toTransportError } from '../clients/temporal/connection.ts';
import type { Config } from '../config.ts';
import type { ServerCtx } from '../context.ts';
import { connectDatabase } from '../db/connect.ts';
import { migrate } from '../db/migrate.ts';
import type { Adoption } from '../db/recovery.ts';
import { createBudgetKeeper } from '../parts/budget-keeper.ts';
import { createStartMarks } from '../parts/delivery/start-marks.ts';
import { createMaintenance } from '../parts/maintenance.ts';
import type { Parts } from '../parts/part.ts';
import type { PersonChecks } from '../use-cases/access/person-session.ts';
import { endLeftCalls } from '../use-cases/callbacks/receipt.ts';
import { eraseProjects } from '../use-cases/erasure/erase-projects.ts';
import { createDuties, type DutyParts } from '../use-cases/maintenance.ts';
import {
  type RecoverCtx,
  type RecoverOptions,
  type RecoveryFindings,
  type RecoveryReport,
  recover,
} from '../use-cases/recovery/recover.ts';
import { probeDueInstances } from '../use-cases/registry/vetting.ts';
import { beginWarmUps } from '../use-cases/registry/warm-up.ts';
import {
  createPurgeExport,
  type DeletedCounts,
  type PurgeExport,
} from '../use-cases/retention/deletion-pass.ts';
import { purge, type Retention } from '../use-cases/retention/purge.ts';
import { createDueWork } from '../use-cases/runs/due-work.ts';
import { createReconcileRuns, createStallWatch } from '../use-cases/runs/repair.ts';
import { fillBack } from '../use-cases/schedules/backfills.ts';
import { watchStarts } from '../use-cases/schedules/watch.ts';
import { resealSecrets } from '../use-cases/secrets/secrets.ts';
import { exportSharedGauges } from '../use-cases/telemetry/shared-gauges.ts';
import { createWebhookDelivery } from '../use-cases/webhooks/delivery.ts';
import {
  addDatabase,
  consoleUrlOf,
  createMedia,
  createTemporal,
  publicUrlOf,
  type Temporal,
} from './shared-context.ts';

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

/** Batches of one maintenance round: two hundred thousand runs. The next round takes the rest. */
const batchesOfRound = 200;

/** Deletes rows and files whose retention is over. */
async function purgeOld(
  ctx: Pick<ServerCtx, 'config' | 'db' | 'media' | 'logger'>,
  isStopping: () => boolean,
): Promise<number> {
  const { config, logger } = ctx;
  const exported = await exportTo(config.PURGE_EXPORT_DIR);
  const limits = { mostBatches: batchesOfRound, exportTo: exported, isStopping };
  const counts = await purge(ctx, { retention: retentionOf(config), ...limits });
  const rows = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (rows > 0) logger.info({ counts }, 'rows past their retention were deleted');
  return rows;
}

/** Statement timeout of a deletion on demand: no caller waits for it. */
const statementMs = 60_000;

/** Deletes everything whose retention is over, even if no server can start: it does not migrate the schema. */
export async function purgeByHand(
  config: Config,
  { exportDir, isTrial }: { readonly exportDir: string | undefined; readonly isTrial: boolean },
): Promise<DeletedCounts> {
  const db = connectDatabase(config.DATABASE_URL, 4, statementMs);
  try {
    const { library: media } = await createMedia(config, db);
    const copy = isTrial ? null : await exportTo(exportDir);
    return await purge({ db, media }, { retention: retentionOf(config), isTrial, exportTo: copy });
  } finally {
    await db.destroy();
  }
}

/** Statement timeout for sums over days of calls: no caller waits for them. */
const sumsMs = 60_000;

/** Makes the maintenance jobs, which repair rows and retry deliveries by schedule. */
export function addMaintenance(ctx: ServerCtx, own: Parts, personChecks: PersonChecks | null): void {
  const { config, db, logger, media, telemetry } = ctx;
  const { metrics } = telemetry;
  const sumsDb = addDatabase(own, config.DATABASE_URL, 1, sumsMs);
  const webhooks = own.add(createWebhookDelivery(ctx));
  const parts: DutyParts = {
    dueWork: createDueWork(ctx),
    hasLines: ctx.fleet.hasLines,
    reconcileRuns: createReconcileRuns(ctx),
    watchStalls: createStallWatch(ctx),
    endLeftCalls: () => endLeftCalls(ctx),
    budgets: createBudgetKeeper({ db, sumsDb, logger, metrics }),
    webhooks,
    media,
    probeDue: (limit) => probeDueInstances(ctx, limit),
    beginWarmUps: () => beginWarmUps(ctx),
    purgeOld: (isStopping) => purgeOld(ctx, isStopping),
    resealSecrets: () => resealSecrets(ctx),
    watchStarts: () => watchStarts(ctx),
    fillBack: () => fillBack(ctx),
    eraseProjects: (isStopping) => eraseProjects(ctx, isStopping),
    recheckPersons: config.OIDC_RECHECK_S === 0 ? undefined : personChecks?.begin,
  };
  const maintenance = createMaintenance({
    db,
    duties: createDuties(ctx, parts),
    intervalMs: config.MAINTENANCE_MS,
    logger,
    metrics,
  });
  own.add(maintenance);
  exportSharedGauges(ctx, maintenance.isHolder);
}

interface OtherCluster {
  /**
   * Rows whose numbers were lowered below the transactions of this cluster; null: the database comes from this cluster.
   */
  readonly other_cluster: Adoption | null;
}

/** The Temporal that the settings lead to. */
interface RecoveryPlace {
  readonly temporal_address: string;
  readonly temporal_namespace: string;
}

export type WholeFindings = OtherCluster & RecoveryPlace & RecoveryFindings;
export type WholeRecovery = OtherCluster & RecoveryPlace & RecoveryReport;
export type RecoveryOptions = RecoverOptions<WholeFindings>;

function placeOf({ address, namespace }: Pick<Temporal, 'address' | 'namespace'>): RecoveryPlace {
  return { temporal_address: address, temporal_namespace: namespace };
}

/** Recovers the database first, then Temporal's missing state. */
export async function recoverFromRestore(
  config: Config,
  { restartsAll, keyActs, onFound }: RecoveryOptions,
): Promise<WholeRecovery> {
  const other_cluster = await migrate(config.DATABASE_URL);
  const db = connectDatabase(config.DATABASE_URL, config.DATABASE_POOL, statementMs);
  const temporal = createTemporal(config);
  const publicUrl = (): string => publicUrlOf(config);
  const ctx: RecoverCtx = {
    config,
    db,
    freezes: neverFrozen,
    logger: pino({ level: 'silent' }),
    temporal,
    outbox: new Map(),
    markStart: createStartMarks(db, temporal.payloadKeys),
    publicUrl,
    consoleUrl: () => consoleUrlOf(config, publicUrl()),
    registerSearchAttributes: temporal.registerSearchAttributes,
    pause: sleep,
  };
  try {
    await temporal.requireNamespace();
    const where = { other_cluster, ...placeOf(temporal) };
    const report = await recover(ctx, {
      restartsAll,
      keyActs,
      onFound: (findings) => onFound({ ...where, ...findings }),
    });
    return { ...where, ...report };
  } catch (thrown) {
    throw toTransportError(thrown);
  } finally {
    await temporal.close();
    await db.destroy();
  }
}
