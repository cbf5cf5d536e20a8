/** What was spent, what may be spent, and the ledger behind it, for the project that the caller works in. */
import type {
  Budget,
  BudgetRequest,
  CostPeriod,
  CostSeries,
  CostSeriesQuery,
  CostSummary,
  LedgerQuery,
} from '../../contracts/money.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import type { Db } from '../../db/connect.ts';
import { readSpending } from '../../db/money/spending.ts';
import { AppError } from '../../errors/app-error.ts';
import type { Caller } from '../access/caller.ts';
import { readBudgets, setBudget } from './budgets.ts';
import { readCostSeries } from './cost-series.ts';
import { exportLedger, readLedgerPage } from './ledger-pages.ts';

function toUsd(nano: string): number {
  return fromNanoUsd(BigInt(nano));
}

/** @param historyDb for what takes as long as there is much to sum or list */
export function createMoneyService(db: Db, historyDb: Db = db) {
  return {
    readCosts: async ({ project_id }: Caller, period: CostPeriod): Promise<CostSummary> => {
      const row = await readSpending(db, project_id, period);
      if (row === undefined) throw new AppError('not_found', `no project ${project_id}`);
      return {
        today_spend_usd: toUsd(row.today_nano),
        today_saved_usd: toUsd(row.saved_nano),
        daily_limit_usd: toUsd(row.daily_limit_nano),
        reserved_usd: toUsd(row.reserved_nano),
        period,
        from: row.first_day,
        to: row.today,
        timezone: row.timezone,
        spend_usd: toUsd(row.spent_nano),
        by_capability: row.by_capability.map(({ capability, spent_nano }) => ({
          capability,
          spend_usd: toUsd(spent_nano),
        })),
      };
    },

    readCostSeries: ({ project_id }: Caller, query: CostSeriesQuery): Promise<CostSeries> =>
      readCostSeries(historyDb, project_id, query),

    readLedger: ({ project_id }: Caller, query: LedgerQuery) => readLedgerPage(historyDb, project_id, query),

    exportLedger: ({ project_id }: Caller, query: LedgerQuery): AsyncIterable<string> =>
      exportLedger(historyDb, project_id, query),

    readBudgets: (caller: Caller): Promise<Budget[]> => readBudgets(db, caller),

    setBudget: (caller: Caller, request: BudgetRequest): Promise<Budget> => setBudget(db, caller, request),
  };
}

export type MoneyService = ReturnType<typeof createMoneyService>;
