/**
 * Today's budgets and their limits. A change of a limit answers the open review about the budget and wakes the waiting
 * steps. Locks are acquired in the order review, budget, steps; a step that begins to wait uses the same order, so none
 * is missed.
 */

import { Budget, type BudgetForecast, type BudgetRequest } from '@capstan/core/contracts/money';
import type { ReviewDecision } from '@capstan/core/contracts/review';
import { toWire } from '@capstan/core/contracts/to-wire';
import { AppError } from '@capstan/core/errors/app-error';
import { forecastSpend } from '@capstan/core/money/forecast';
import { fromNanoUsd, limitOf, toNanoUsd } from '@capstan/core/money/nano-usd';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import {
  type BudgetRow,
  listBudgets,
  setGlobalLimit,
  setProjectLimit,
  setRunLimit,
} from '../../db/money/budget.ts';
import { resolveBudgetReviews } from '../../db/review/review.ts';
import { type RunKey, setRunCeiling } from '../../db/run/run-control.ts';
import { wakeScope } from '../../db/step/step-wait.ts';
import { type Caller, isOperator, requireScope } from '../access/caller.ts';

interface GivenLimit {
  /** The key that changed the limit. */
  readonly by: string;
  /** Null = none. */
  readonly limitUsd: number | null;
}

/** Answers the open reviews: of steps, of ladders, of other projects. */
export async function answerQuestions(trx: Db, scope: string, { by, limitUsd }: GivenLimit): Promise<void> {
  const note = limitUsd === null ? 'no ceiling any more' : 'by the budget itself';
  const decision: ReviewDecision = {
    action: 'raise',
    note,
    ...(limitUsd === null ? {} : { budget_ceiling_usd: limitUsd }),
  };
  for (const { review_id, project_id } of await resolveBudgetReviews(trx, scope, {
    by,
    decision,
    limitUsd,
  })) {
    await insertAudit(trx, {
      project_id,
      actor: by,
      action: 'review.decided',
      subject: review_id,
      data: { kind: 'budget', decision: { ...decision } },
    });
  }
}

interface RunCeiling {
  /** Null = none. */
  readonly ceilingUsd: number | null;
  readonly by: string;
  /** Of two raises at once, the higher one holds. Default: a lower ceiling is set too. */
  readonly isRaise?: boolean;
}

/** What a refused raise has seen. @param was null: no ceiling */
export function refuseRaise(run_id: string, was: number | null, ceilingUsd: number | null): AppError {
  const has = was === null ? 'has no ceiling' : `has a ceiling of ${was} USD`;
  return new AppError('state_conflict', `run ${run_id} ${has}; ${ceilingUsd ?? 'none'} does not raise it`);
}

/** @throws AppError `state_conflict` when the run is not running, or is not raised; nothing was written */
export function raiseRun(
  db: Db,
  key: RunKey,
  { ceilingUsd, by, isRaise = false }: RunCeiling,
): Promise<void> {
  return db.transaction(async (trx) => {
    const scope = `run:${key.run_id}`;
    await answerQuestions(trx, scope, { by, limitUsd: ceilingUsd });
    const set = await setRunCeiling(trx, key, { ceilingUsd, isRaise });
    if (set === undefined) throw new AppError('state_conflict', `run ${key.run_id} is not running`);
    if (!set.is_set) throw refuseRaise(key.run_id, set.was === null ? null : Number(set.was), ceilingUsd);
    await setRunLimit(trx, key.run_id, ceilingUsd === null ? null : toNanoUsd(ceilingUsd));
    await wakeScope(trx, scope);
  });
}

type DayScope = { readonly scope: 'global' } | { readonly scope: 'project'; readonly project_id: string };

function nameOf(day: DayScope): string {
  return day.scope === 'global' ? 'global' : `project:${day.project_id}`;
}

interface DayLimit {
  /** The limit of every day from today on; 0 = none. */
  readonly limitUsd: number;
  readonly isRaise: boolean;
  /** The key that changed the limit. */
  readonly by: string;
}

function noteLimit(trx: Db, day: DayScope, { limitUsd, by }: DayLimit): Promise<void> {
  const project_id = day.scope === 'global' ? null : day.project_id;
  return insertAudit(trx, {
    project_id,
    actor: by,
    action: 'budget.limited',
    subject: project_id ?? day.scope,
    data: { scope: day.scope, daily_limit_usd: limitUsd },
  });
}

export function setDayLimit(db: Db, day: DayScope, given: DayLimit): Promise<void> {
  const { limitUsd, isRaise, by } = given;
  return db.transaction(async (trx) => {
    const limit = limitOf(limitUsd);
    const limitNano = limit === null ? null : toNanoUsd(limit);
    if (isRaise) await answerQuestions(trx, nameOf(day), { by, limitUsd: limit });
    if (day.scope === 'global') await setGlobalLimit(trx, limitNano);
    else await setProjectLimit(trx, day.project_id, limitNano);
    await noteLimit(trx, day, given);
    if (isRaise) await wakeScope(trx, nameOf(day));
  });
}

interface ForecastRow extends Pick<BudgetRow, 'limit_nano' | 'spent_nano' | 'reserved_nano'> {
  readonly opens_at: Date;
  readonly resets_at: Date | null;
  readonly now: Date;
}

export function forecastOf(row: ForecastRow): BudgetForecast | null {
  const window = {
    opened: row.opens_at.getTime(),
    closes: row.resets_at?.getTime() ?? null,
    spent: Number(row.spent_nano),
    reserved: Number(row.reserved_nano),
    limit: Number(row.limit_nano ?? 0),
  };
  const forecast = forecastSpend(window, row.now.getTime());
  if (forecast === null) return null;
  const { spent, limitAt } = forecast;
  return {
    spend_usd: spent === null ? null : fromNanoUsd(BigInt(Math.round(spent))),
    limit_at: limitAt === null ? null : new Date(limitAt).toISOString(),
  };
}

/** Today's budgets and their limits. */
function toBudget(row: BudgetRow): Budget {
  const marks = [
    { percent: 50, at: row.reached_50_at },
    { percent: 80, at: row.reached_80_at },
    { percent: 100, at: row.reached_100_at },
  ];
  return toWire(Budget, {
    ...row,
    daily_limit_usd: fromNanoUsd(BigInt(row.limit_nano ?? 0)),
    spent_usd: fromNanoUsd(BigInt(row.spent_nano)),
    reserved_usd: fromNanoUsd(BigInt(row.reserved_nano)),
    forecast: forecastOf(row),
    reached: marks.flatMap(({ percent, at }) => (at === null ? [] : [{ percent, at: at.toISOString() }])),
  });
}

/** Reads the project's budget and that of all projects. */
export async function readAllBudgets(db: Db, projectId: string): Promise<Budget[]> {
  return (await listBudgets(db, projectId)).map(toBudget);
}

/** Reads the project's budget; an operator also sees that of all projects. */
export async function readBudgets({ db }: { readonly db: Db }, caller: Caller): Promise<Budget[]> {
  const budgets = await readAllBudgets(db, caller.project_id);
  return budgets.filter(({ scope }) => scope === 'project' || isOperator(caller));
}

/**
 * A higher limit wakes the waiting steps and answers the review about the budget.
 * It holds for every reservation that begins after it returns. Existing reservations stay, even above the limit.
 *
 * @throws AppError `forbidden` when a caller without `operator` sets the limit of all projects
 */
export async function setBudget(
  ctx: { readonly db: Db },
  caller: Caller,
  { scope, daily_limit_usd }: BudgetRequest,
): Promise<Budget> {
  if (scope === 'global') requireScope(caller, 'operator');
  const before =
    (await readBudgets(ctx, caller)).find((budget) => budget.scope === scope)?.daily_limit_usd ?? 0;
  const isRaise = limitOf(before) !== null && (limitOf(daily_limit_usd) ?? Infinity) > before;
  const day = scope === 'global' ? { scope } : { scope, project_id: caller.project_id };
  const limit = { limitUsd: daily_limit_usd, by: caller.key_id, isRaise };
  await setDayLimit(ctx.db, day, limit);
  const budgets = await readBudgets(ctx, caller);
  return budgets.find((budget) => budget.scope === scope) as Budget;
}
