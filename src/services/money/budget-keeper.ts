/** Duties around budgets: what people are told of, and proof that the sums are right. */
import type { Logger } from 'pino';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import { type Metrics, noMetrics } from '../../core/telemetry/metrics.ts';
import type { Db } from '../../db/connect.ts';
import { takeNewMarks } from '../../db/money/budget.ts';
import { correctDrift } from '../../db/money/budget-drift.ts';

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
  /** Where a statement may take long. Default: `db`. */
  readonly sumsDb?: Db;
  readonly logger: Logger;
  /** Default: nothing is counted. */
  readonly metrics?: Metrics;
}

function sizeOf(nano: string): number {
  return Math.abs(Number(nano));
}

export function createBudgetKeeper({
  db,
  sumsDb = db,
  logger,
  metrics = noMetrics,
}: KeeperDependencies): BudgetKeeper {
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
      const drift = await correctDrift(sumsDb);
      for (const { scope, day, reserved_nano, spent_nano } of drift) {
        metrics.add('budget_drift_nano_usd_total', {}, sizeOf(reserved_nano) + sizeOf(spent_nano));
        const missing = { reserved_usd: toUsd(reserved_nano), spent_usd: toUsd(spent_nano) };
        logger.error(
          { scope, ...dayOf(day), missing },
          'a budget differed from its attempts and was corrected',
        );
      }
      return drift.length;
    },
  };
}
