/**
 * Daily budgets as people see and set them, and the room in them. A new limit holds from the next reservation on, in
 * every process. It first changes the source of new days, waiting for a day that is being added, and then every
 * existing day from today on. Reservations change the rows by database functions: sql/money.sql.
 */
import type { OnBudget } from '@capstan/core/contracts/decision';
import type { BudgetPeriod } from '@capstan/core/contracts/money';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';

/** Daily limit of a `project` row; null = no limit, which the column stores as 0. */
export const dailyLimitNano = 'nullif(daily_limit_nano, 0)';

export interface BudgetRow {
  readonly scope: 'project' | 'global';
  /** The day, YYYY-MM-DD */
  readonly window: string;
  readonly timezone: string;
  /** Null = no limit. Amounts are bigint as text. */
  readonly limit_nano: string | null;
  readonly spent_nano: string;
  readonly reserved_nano: string;
  readonly opens_at: Date;
  readonly resets_at: Date;
  readonly now: Date;
  readonly reached_50_at: Date | null;
  readonly reached_80_at: Date | null;
  readonly reached_100_at: Date | null;
}

/** Today's budgets of a project and of all projects, even if nothing was spent. */
export function listBudgets(db: Db, projectId: string): Promise<readonly BudgetRow[]> {
  return query<BudgetRow>(db).all(
    `select t.name as scope, t.day::text as "window", t.timezone, day_start(t.day, t.timezone) as opens_at,
       day_start(t.day + 1, t.timezone) as resets_at, now() as now,
       case when b.scope is null then t.limit_nano else b.limit_nano end as limit_nano,
       coalesce(b.spent_nano, 0) as spent_nano, coalesce(b.reserved_nano, 0) as reserved_nano,
       b.reached_50_at, b.reached_80_at, b.reached_100_at
     from (
       select 1 as place, 'project' as name, 'project:' || project_id as scope, timezone,
         (now() at time zone timezone)::date as day, ${dailyLimitNano} as limit_nano
       from project where project_id = ?
       union all
       select 2, 'global', 'global', 'UTC', (now() at time zone 'UTC')::date, limit_nano
       from budget where scope = 'global' and window_start = '-infinity'
     ) t left join budget b on b.scope = t.scope and b.window_start = t.day order by t.place`,
    [projectId],
  );
}

interface WindowLimit {
  readonly scope: string;
  /** Of days from today on, or months from the current one on; null: windows without a day. */
  readonly timezone: string | null;
  readonly period?: BudgetPeriod;
  /** Null = no limit. */
  readonly limitNano: bigint | null;
  /** The share of the limit that is marked. */
  readonly soft?: number;
}

/** Sets the limit of existing windows and recalculates their marks. */
export async function limitWindows(
  trx: Db,
  { scope, timezone, period = 'day', limitNano, soft = 0.8 }: WindowLimit,
): Promise<void> {
  await trx.raw(
    `with held as (
       select scope, window_start from budget
       where scope = :scope and case when :timezone::text is null then window_start = '-infinity'
         else window_start >= date_trunc(:period, clock_timestamp() at time zone :timezone)::date end
       order by window_start for update
     )
     update budget b set limit_nano = l.nano, soft = l.soft,
       reached_50_at = case when b.spent_nano >= l.nano * 0.5 then coalesce(b.reached_50_at, clock_timestamp()) end,
       reached_80_at = case when b.spent_nano >= l.nano * l.soft then coalesce(b.reached_80_at, clock_timestamp()) end,
       reached_100_at = case when b.spent_nano >= l.nano then coalesce(b.reached_100_at, clock_timestamp()) end,
       announced = least(b.announced, case when b.spent_nano >= l.nano then 100
         when b.spent_nano >= l.nano * l.soft then 80
         when b.spent_nano >= l.nano * 0.5 or b.scope like 'budget:%' then 50 else 0 end)
     from held, (select cast(:limit as bigint) as nano, cast(:soft as numeric) as soft) l
     where b.scope = held.scope and b.window_start = held.window_start`,
    {
      scope,
      timezone: period === 'total' ? null : timezone,
      period,
      soft,
      limit: limitNano?.toString() ?? null,
    },
  );
}

/** @param limitNano of every day from today on; null = no limit */
export function setProjectLimit(db: Db, projectId: string, limitNano: bigint | null): Promise<void> {
  return db.transaction(async (trx) => {
    const row = await query<{ timezone: string }>(trx).first(
      'update project set daily_limit_nano = ? where project_id = ? returning timezone',
      [(limitNano ?? 0n).toString(), projectId],
    );
    const timezone = row?.timezone ?? 'UTC';
    await limitWindows(trx, { scope: `project:${projectId}`, timezone, limitNano });
  });
}

/** @param limitNano of every day from today on; null = no limit */
export function setGlobalLimit(db: Db, limitNano: bigint | null): Promise<void> {
  return db.transaction(async (trx) => {
    await trx.raw(`update budget set limit_nano = ? where scope = 'global' and window_start = '-infinity'`, [
      limitNano?.toString() ?? null,
    ]);
    await limitWindows(trx, { scope: 'global', timezone: 'UTC', limitNano });
  });
}

/** Sets the limit of a run whose row already has its new ceiling. @param limitNano null = no limit */
export async function setRunLimit(trx: Db, runId: string, limitNano: bigint | null): Promise<void> {
  const scope = `run:${runId}`;
  // Waits for a first claim that is adding the row with the old ceiling.
  await trx.raw(`select open_budget(?, '-infinity')`, [scope]);
  await limitWindows(trx, { scope, timezone: null, limitNano });
}

interface NewMarks {
  readonly scope: string;
  /** YYYY-MM-DD, or `-infinity` for a run. */
  readonly day: string;
  /** Percent of the limit, ascending. */
  readonly percents: readonly number[];
  readonly limit_nano: string;
  readonly spent_nano: string;
}

/**
 * Takes marks that were not announced yet, each once. Writes those of the project and of all projects to the logs of
 * the open runs that they concern, with amounts only for the project's own budget.
 */
export function takeNewMarks(db: Db): Promise<readonly NewMarks[]> {
  return query<NewMarks>(db, 'take_new_marks').all(`with told as (
       select scope, window_start, array_remove(array[
           case when reached_50_at is not null and announced < 50 then 50 end,
           case when reached_80_at is not null and announced < 80 then 80 end,
           case when reached_100_at is not null and announced < 100 then 100 end], null) as percents
       from budget
       where (reached_50_at is not null and announced < 50) or (reached_80_at is not null and announced < 80)
         or (reached_100_at is not null and announced < 100)
       order by scope, window_start limit 500 for update
     ), marked as (
       update budget b set announced = (select max(percent) from unnest(t.percents) percent)
       from told t where b.scope = t.scope and b.window_start = t.window_start
       returning b.scope, b.window_start, t.percents, b.limit_nano, b.spent_nano, b.soft
     ), logged as (
       insert into event (run_id, type, data)
       select r.run_id, 'run.budget_reached', jsonb_build_object('scope', split_part(m.scope, ':', 1),
           'day', m.window_start::text, 'percent', percent)
         || case when m.scope = 'global' then '{}' else jsonb_build_object(
           'limit_usd', m.limit_nano / 1000000000.0, 'spent_usd', m.spent_nano / 1000000000.0) end
       from marked m cross join lateral unnest(m.percents) percent
       join run r on r.finished_at is null and (m.scope = 'global' or m.scope = 'project:' || r.project_id)
       order by m.scope, percent
     )
     select scope, window_start::text as day, limit_nano, spent_nano, array(
       select case percent when 80 then soft * 100 else percent end::float8 from unnest(percents) percent) as percents
     from marked`);
}

/** Room for reservations in today's budgets, the project's and the global one; null = no limit. */
interface HeadroomRow {
  readonly project_nano: string | null;
  readonly global_nano: string | null;
  /** Of the project: the end of calls without room. */
  readonly on_budget: OnBudget | null;
}

export function readHeadroom(db: Db, projectId: string): Promise<HeadroomRow> {
  return query<HeadroomRow>(db).one(
    `select
       (select case when day.scope is null then standing.limit_nano
           else day.limit_nano - day.spent_nano - day.reserved_nano end
         from budget standing left join budget day
           on day.scope = 'global' and day.window_start = (now() at time zone 'UTC')::date
         where standing.scope = 'global' and standing.window_start = '-infinity')::text as global_nano,
       (select case when day.scope is null then ${dailyLimitNano}
           else day.limit_nano - day.spent_nano - day.reserved_nano end
         from project p left join budget day
           on day.scope = 'project:' || p.project_id and day.window_start = (now() at time zone p.timezone)::date
         where p.project_id = :projectId)::text as project_nano,
       (select p.on_budget from project p where p.project_id = :projectId) as on_budget`,
    { projectId },
  );
}

/**
 * Whether the budget would have room for this amount, in nano-USD, if the calls in flight cost nothing. Locks the row:
 * it waits for a concurrent change of the limit, and a later change sees the rows written here.
 */
export async function hasRoomFor(trx: Db, scope: string, nano: bigint): Promise<boolean> {
  const row = await query<{ has_room: boolean }>(trx).first(
    `select limit_nano is null or spent_nano + ?::bigint <= limit_nano as has_room from budget
     where scope = ? order by window_start desc limit 1 for share`,
    [nano.toString(), scope],
  );
  return row?.has_room ?? true;
}
