import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import type { Config } from '../config.ts';
import type { Adoption } from '../db/adopt-cluster.ts';
import { connectDatabase } from '../db/connect.ts';
import { migrate } from '../db/migrate.ts';
import { createRestartForgottenLadders } from '../services/escalation/ladder/restart-forgotten-ladders.ts';
import { type RecoveryReport, recover } from '../services/recovery/recover.ts';
import { createRestartForgottenSchedules } from '../services/schedules/restart-forgotten-schedules.ts';
import { consoleUrlOf, publicUrlOf } from './addresses.ts';
import { createOutbox } from './outbox.ts';
import { createTemporal } from './temporal.ts';

export interface WholeRecovery extends RecoveryReport {
  /** What was brought below the transactions of this cluster; null: the database did not come from another one. */
  readonly other_cluster: Adoption | null;
}

/** A statement may take a minute: nothing else goes on yet. */
const statementMs = 60_000;

/** The database first, then what Temporal lacks. */
export async function recoverFromRestore(
  config: Config,
  options: { readonly restartsAll: boolean },
): Promise<WholeRecovery> {
  const other_cluster = await migrate(config.DATABASE_URL);
  const db = connectDatabase(config.DATABASE_URL, config.DATABASE_POOL, statementMs);
  const temporal = await createTemporal(config).catch(async (error: unknown) => {
    await db.destroy();
    throw error;
  });
  const { workflows, schedules, registerSearchAttributes } = temporal;
  const logger = pino({ level: 'silent' });
  const publicUrl = (): string => publicUrlOf(config);
  const consoleUrl = (): string => consoleUrlOf(config, publicUrl());
  const outbox = createOutbox(config, { ...temporal, db, logger, publicUrl, consoleUrl });
  const common = { db, workflows, schedules, logger };
  try {
    const report = await recover(
      {
        ...common,
        delivery: outbox.runs,
        restartLadders: createRestartForgottenLadders({ ...common, delivery: outbox.escalations }),
        restartSchedules: createRestartForgottenSchedules({ ...common, delivery: outbox.schedules }),
        registerSearchAttributes,
        pause: sleep,
      },
      options,
    );
    await outbox.settled();
    return { other_cluster, ...report };
  } finally {
    await temporal.close();
    await db.destroy();
  }
}
