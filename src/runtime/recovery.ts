import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import type { Config } from '../config.ts';
import type { Adoption } from '../db/adopt-cluster.ts';
import { connectDatabase } from '../db/connect.ts';
import { migrate } from '../db/migrate.ts';
import { createRestartForgottenLadders } from '../services/escalation/ladder/restart-forgotten-ladders.ts';
import {
  type RecoverOptions,
  type RecoveryFindings,
  type RecoveryReport,
  recover,
} from '../services/recovery/recover.ts';
import { createRestartForgottenSchedules } from '../services/schedules/restart-forgotten-schedules.ts';
import { consoleUrlOf, publicUrlOf } from './addresses.ts';
import { createOutbox } from './outbox.ts';
import { createTemporal } from './temporal.ts';

interface OtherCluster {
  /** What was brought below the transactions of this cluster; null: the database did not come from another one. */
  readonly other_cluster: Adoption | null;
}

export type WholeFindings = OtherCluster & RecoveryFindings;
export type WholeRecovery = OtherCluster & RecoveryReport;
export type RecoveryOptions = RecoverOptions<WholeFindings>;

/** A statement may take a minute: nothing else goes on yet. */
const statementMs = 60_000;

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
