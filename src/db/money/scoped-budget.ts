/**
 * The budgets that a project sets for a part of its calls, with their current windows. A call is charged to those that
 * match when it is admitted (`draw_budgets`, sql/money.sql). A new limit reaches existing windows as those of days do
 * (budget.ts).
 */
import type { BudgetPeriod, ScopeAndPeriod } from '@capstan/core/contracts/money';
import type { ProjectRow } from '../access/project.ts';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';
import { limitWindows } from './budget.ts';

/** The name of the budget's rows, which is also the subject of reviews about it. */
export function rowOfScoped(projectId: string, { scope, period }: ScopeAndPeriod): string {
  return `budget:${projectId}:${period}:${scope}`;
}

export interface ScopedRow extends ScopeAndPeriod {
  readonly projectId: string;
}

/** The inverse of `rowOfScoped`; null for another budget. */
export function readScopedRow(row: string): ScopedRow | null {
  const [, projectId, period, scope] = /^budget:([^:]*):(day|month|total):(.*)$/s.exec(row) ?? [];
  if (projectId === undefined || scope === undefined) return null;
  return { projectId, period: period as BudgetPeriod, scope };
}

export interface ScopedBudgetRow extends ScopeAndPeriod {
  /** Amounts are bigint as text. */
  readonly limit_nano: string;
  readonly soft: number;
  /** The first day of the window, YYYY-MM-DD; null by total */
  readonly window: string | null;
  readonly timezone: string;
  readonly spent_nano: string;
  readonly reserved_nano: string;
  /** When the window began, or the budget was added in it. */
  readonly opens_at: Date;
  /** Null by total */
  readonly resets_at: Date | null;
  readonly now: Date;
  /** When spending reached the soft mark. */
  readonly reached_80_at: Date | null;
  readonly reached_100_at: Date | null;
}

/** In the order of their scopes. @param scope only this one */
export function listScopedBudgets(
  db: Db,
  projectId: string,
  scope: string | null = null,
): Promise<readonly ScopedBudgetRow[]> {
  return query<ScopedBudgetRow>(db).all(
    `select s.scope, s.period, s.limit_nano, s.soft::float8, w.first::text as "window", p.timezone,
       greatest(day_start(w.first, p.timezone), s.created_at) as opens_at, now() as now,
       case when w.first is not null then
         day_start((w.first + ('1 ' || s.period)::interval)::date, p.timezone) end as resets_at,
       coalesce(b.spent_nano, 0) as spent_nano, coalesce(b.reserved_nano, 0) as reserved_nano,
       b.reached_80_at, b.reached_100_at
     from project p join scoped_budget s using (project_id)
     cross join lateral (
       select case when s.period <> 'total' then date_trunc(s.period, now() at time zone p.timezone)::date end as first) w
     left join budget b on b.scope = 'budget:' || p.project_id || ':' || s.period || ':' || s.scope
       and b.window_start = coalesce(w.first, '-infinity')
     where p.project_id = :projectId and (:scope::text is null or s.scope = :scope)
     order by s.scope, s.period`,
    { projectId, scope },
  );
}

/** Locks the project's row, so that two changes of its budgets do not overtake one another. */
export async function lockScopedBudgets(trx: Db, projectId: string): Promise<readonly ScopeAndPeriod[]> {
  await trx.raw('select 1 from project where project_id = ? for no key update', [projectId]);
  return trx('scoped_budget').where({ project_id: projectId }).select('scope', 'period');
}

interface ScopedLimit extends ScopeAndPeriod {
  readonly limitNano: bigint;
  readonly soft: number;
}

async function limitScoped(
  trx: Db,
  projectId: string,
  { scope, period, limitNano, soft }: ScopeAndPeriod & { limitNano: bigint | null; soft: number },
): Promise<void> {
  const { timezone } = await query<{ timezone: string }>(trx).one(
    `update project p set has_budgets = exists (select from scoped_budget s where s.project_id = p.project_id)
     where project_id = ? returning timezone`,
    [projectId],
  );
  await limitWindows(trx, {
    scope: rowOfScoped(projectId, { scope, period }),
    timezone,
    period,
    limitNano,
    soft,
  });
}

/**
 * Gives the current windows of a project their limits, after a change of its time zone: a date may be that of an earlier
 * day, with the limit of then. Locks in the order of claims (L4): scoped budgets, then the day.
 * @param trx in which the project's row is locked
 */
export async function limitDaysAgain(
  trx: Db,
  {
    project_id,
    timezone,
    daily_limit_nano,
  }: Pick<ProjectRow, 'project_id' | 'timezone' | 'daily_limit_nano'>,
): Promise<void> {
  const scoped = await query<ScopeAndPeriod & { limit_nano: string; soft: number }>(trx).all(
    `select scope, period, limit_nano, soft::float8 from scoped_budget where project_id = ?
     order by ('budget:' || project_id || ':' || period || ':' || scope) collate "C"`,
    [project_id],
  );
  for (const { scope, period, limit_nano, soft } of scoped) {
    const row = rowOfScoped(project_id, { scope, period });
    await limitWindows(trx, { scope: row, timezone, period, limitNano: BigInt(limit_nano), soft });
  }
  const limitNano = BigInt(daily_limit_nano) === 0n ? null : BigInt(daily_limit_nano);
  await limitWindows(trx, { scope: `project:${project_id}`, timezone, limitNano });
}

/** Adds or changes it. @param trx in which the project's row is locked */
export async function setScopedBudget(trx: Db, projectId: string, limit: ScopedLimit): Promise<void> {
  const { scope, period, limitNano, soft } = limit;
  await trx.raw(
    `insert into scoped_budget (project_id, scope, period, limit_nano, soft) values (?, ?, ?, ?, ?)
     on conflict (project_id, scope, period) do update set limit_nano = excluded.limit_nano, soft = excluded.soft`,
    [projectId, scope, period, limitNano.toString(), soft],
  );
  await limitScoped(trx, projectId, limit);
}

/** Calls in flight still settle in its rows, which have no limit then. @returns whether there was one */
export async function deleteScopedBudget(
  trx: Db,
  projectId: string,
  { scope, period }: ScopeAndPeriod,
): Promise<boolean> {
  const deleted: number = await trx('scoped_budget').where({ project_id: projectId, scope, period }).delete();
  if (deleted > 0) await limitScoped(trx, projectId, { scope, period, limitNano: null, soft: 0.8 });
  return deleted > 0;
}

/**
 * Removes the budgets of batches whose last run is deleted: nothing can be charged to them again. They are a day old, so
 * that the rest of a large batch still finds its budget. @param trx in which the project's row is locked
 */
export async function deleteEmptyBatches(trx: Db, projectId: string): Promise<void> {
  await trx.raw(
    `delete from scoped_budget s
     where s.project_id = :projectId and s.period = 'total' and s.scope like 'label:batch=bat\\_%'
       and s.created_at < now() - interval '1 day' and not exists (
         select from run r where r.project_id = s.project_id
           and r.labels @> jsonb_build_object('batch', substr(s.scope, length('label:batch=') + 1)))`,
    { projectId },
  );
}

/**
 * Calls `erase_user` (sql/deletion.sql).
 * @param scope `user:<id>` @param pseudonym `user:<other>`
 * @returns how many calls named the user
 */
export async function eraseUser(
  trx: Db,
  projectId: string,
  { scope, pseudonym }: { readonly scope: string; readonly pseudonym: string },
): Promise<number> {
  const row = await query<{ calls: number }>(trx).one('select erase_user(?, ?, ?) as calls', [
    projectId,
    scope,
    pseudonym,
  ]);
  return row.calls;
}
