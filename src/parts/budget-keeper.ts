/** Maintenance of budgets: marks that are logged, and a check of the sums. */

import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import type { Metrics } from '@capstan/core/telemetry/telemetry';
import type { Logger } from 'pino';
import type { Db } from '../db/connect.ts';
import { takeNewMarks } from '../db/money/budget.ts';
import { addEnded, correctDrift, type EndedSums, findDrift } from '../db/money/budget-drift.ts';

export interface BudgetKeeper {
  /** Logs each mark (50, 80, 100 %) that spending has passed, once. */
  announceMarks(): Promise<void>;
  /** Corrects budgets that differ from their attempts, and logs each as an error. @returns how many */
  reconcile(): Promise<number>;
}

function toUsd(nano: string): number {
  return fromNanoUsd(BigInt(nano));
}

/** A run has no day. */
function dayOf(day: string): { day?: string } {
  return day === '-infinity' ? {} : { day };
}

interface KeeperDependencies {
  readonly db: Db;
  /** For slow statements. Default: `db`. */
  readonly sumsDb?: Db;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

const dayMs = 86_400_000;
const corrected = 'a budget differed from its attempts and was corrected';

function sizeOf(nano: string): number {
  return Math.abs(Number(nano));
}

/**
 * Compares with kept sums, which are rebuilt each day, so that a later change of a call of these days is noticed too.
 */
function createDriftLook(db: Db, now: () => number) {
  let ended: EndedSums | null = null;
  let endedSince = 0;
  return {
    mayDiffer: async (): Promise<boolean> => {
      if (now() - endedSince > dayMs) ended = null;
      if (ended === null) endedSince = now();
      ended = await addEnded(db, ended);
      return (await findDrift(db, ended)).length > 0;
    },
    forget: (): void => {
      ended = null;
    },
  };
}

export function createBudgetKeeper({
  db,
  sumsDb = db,
  logger,
  metrics,
  now = () => performance.now(),
}: KeeperDependencies): BudgetKeeper {
  const look = createDriftLook(sumsDb, now);
  return {
    announceMarks: async () => {
      for (const { scope, day, percents, limit_nano, spent_nano } of await takeNewMarks(db)) {
        for (const percent of percents) {
          const facts = {
            scope,
            ...dayOf(day),
            percent,
            limit_usd: toUsd(limit_nano),
            spent_usd: toUsd(spent_nano),
          };
          if (percent < 80) logger.info(facts, 'budget reached');
          else logger.warn(facts, 'budget reached');
        }
      }
    },

    reconcile: async () => {
      if (!(await look.mayDiffer())) return 0;
      look.forget();
      const drift = await correctDrift(sumsDb);
      for (const { scope, day, reserved_nano, spent_nano } of drift) {
        metrics.add('budget_drift_nano_usd_total', {}, sizeOf(reserved_nano) + sizeOf(spent_nano));
        const missing = { reserved_usd: toUsd(reserved_nano), spent_usd: toUsd(spent_nano) };
        logger.error({ scope, ...dayOf(day), missing }, corrected);
      }
      return drift.length;
    },
  };
}
