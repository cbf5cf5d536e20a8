/**
 * Another limit of a budget, and what follows from it: the open question about it is answered, and what waits for room
 * goes on. The question, then the budget, then the steps: a step that begins to wait takes them in the same order, so
 * none is forgotten.
 */
import type { ReviewDecision } from '../../contracts/review.ts';
import { toNanoUsd } from '../../core/money/nano-usd.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import { setGlobalLimit, setProjectLimit, setRunLimit } from '../../db/money/budget.ts';
import { resolveBudgetReviews } from '../../db/review/review-budget.ts';
import { type RunKey, setRunCeiling } from '../../db/run/run-control.ts';
import { wakeScope } from '../../db/step/step-wait.ts';
import { AppError } from '../../errors/app-error.ts';

interface GivenLimit {
  /** The key that gave it. */
  readonly by: string;
  /** Null = none. */
  readonly limitUsd: number | null;
}

/** Those that are open: of steps, of ladders, of other projects. */
async function answerQuestions(trx: Db, scope: string, { by, limitUsd }: GivenLimit): Promise<void> {
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

/** @param ceilingUsd null = none @throws AppError `state_conflict` when the run is not under way; nothing was written */
export function raiseRun(
  db: Db,
  key: RunKey,
  { ceilingUsd, by }: { readonly ceilingUsd: number | null; readonly by: string },
): Promise<void> {
  return db.transaction(async (trx) => {
    const scope = `run:${key.run_id}`;
    await answerQuestions(trx, scope, { by, limitUsd: ceilingUsd });
    if (!(await setRunCeiling(trx, key, ceilingUsd))) {
      throw new AppError('state_conflict', `run ${key.run_id} is not under way`);
    }
    await setRunLimit(trx, key.run_id, ceilingUsd === null ? null : toNanoUsd(ceilingUsd));
    await wakeScope(trx, scope);
  });
}

export type DayScope =
  | { readonly scope: 'global' }
  | { readonly scope: 'project'; readonly project_id: string };

function nameOf(day: DayScope): string {
  return day.scope === 'global' ? 'global' : `project:${day.project_id}`;
}

interface DayLimit {
  /** What every day from today on may cost; 0 = nothing. */
  readonly limitUsd: number;
  readonly isRaise: boolean;
  /** The key that gave it. */
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

export function setDayLimit(db: Db, day: DayScope, limit: DayLimit): Promise<void> {
  const { limitUsd, isRaise, by } = limit;
  return db.transaction(async (trx) => {
    const limitNano = limitUsd === 0 ? null : toNanoUsd(limitUsd);
    if (isRaise) await answerQuestions(trx, nameOf(day), { by, limitUsd: limitUsd === 0 ? null : limitUsd });
    if (day.scope === 'global') await setGlobalLimit(trx, limitNano);
    else await setProjectLimit(trx, day.project_id, limitNano);
    await noteLimit(trx, day, limit);
    if (isRaise) await wakeScope(trx, nameOf(day));
  });
}
