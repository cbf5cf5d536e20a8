/**
 * What a project spent, from the sums that its budgets keep: a row per day, and per day and capability. The ledger is
 * not read, so the time depends on days and capabilities only; what was saved is summed of today alone, in an index that
 * holds nothing else.
 */
import type { CostPeriod } from '../../contracts/money.ts';
import type { Db } from '../connect.ts';

export interface SpendingRow {
  readonly timezone: string;
  /** 0 = none. Amounts are bigint as text. */
  readonly daily_limit_nano: string;
  /** YYYY-MM-DD */
  readonly today: string;
  /** Null for `all`. */
  readonly first_day: string | null;
  readonly today_nano: string;
  readonly reserved_nano: string;
  /** What results had cost that were taken today instead of making calls. */
  readonly saved_nano: string;
  readonly spent_nano: string;
  /** Most expensive first. */
  readonly by_capability: readonly { readonly capability: string; readonly spent_nano: string }[];
}

/** Many days: all rows of the project, each page of the table once. */
const sumRange = `capabilities as (
  select substr(scope, length(:prefix) + 1) as capability, sum(spent_nano) as nano
  from budget where scope > :prefix and scope < :stop group by scope
)`;

/** Few days: the names by leaping from one to the next, then the days of each. */
const sumDays = `names as (
  (select scope from budget where scope > :prefix and scope < :stop order by scope limit 1)
  union all
  select (select b.scope from budget b where b.scope > n.scope and b.scope < :stop order by b.scope limit 1)
  from names n where n.scope is not null
), capabilities as (
  select substr(n.scope, length(:prefix) + 1) as capability, s.nano
  from span cross join names n cross join lateral (
    select sum(b.spent_nano) as nano from budget b
    where b.scope = n.scope and b.window_start between span.first_day and span.today) s
)`;

/** @param period up to today: a calendar week starts on Monday, a month on its first, in the project's days */
export async function readSpending(
  db: Db,
  projectId: string,
  period: CostPeriod,
): Promise<SpendingRow | undefined> {
  const { rows } = await db.raw<{ rows: SpendingRow[] }>(
    `with recursive span as materialized (
       select timezone, daily_limit_nano, today, case :period when 'day' then today
           when 'week' then date_trunc('week', today::timestamp)::date
           when 'month' then date_trunc('month', today::timestamp)::date end as first_day
       from (select *, (now() at time zone timezone)::date as today from project where project_id = :projectId) p
     ), ${period === 'all' ? sumRange : sumDays}
     select timezone, daily_limit_nano, today::text, first_day::text,
       (select coalesce(sum(a.saved_nano), 0) from attempt a where a.project_id = :projectId and a.state = 'cached'
         and a.started_at >= (today::timestamp at time zone timezone)) as saved_nano,
       coalesce(days.today_nano, 0) as today_nano, coalesce(days.reserved_nano, 0) as reserved_nano,
       coalesce(days.spent_nano, 0) as spent_nano, coalesce(parts.by_capability, '[]') as by_capability
     from span
     cross join lateral (
       select sum(spent_nano) as spent_nano, sum(spent_nano) filter (where window_start = today) as today_nano,
         sum(reserved_nano) filter (where window_start = today) as reserved_nano
       from budget where scope = :scope and window_start between coalesce(first_day, '-infinity') and today) days
     cross join (
       select jsonb_agg(jsonb_build_object('capability', capability, 'spent_nano', nano::text)
         order by nano desc, capability) as by_capability from capabilities where nano > 0) parts`,
    {
      period,
      projectId,
      scope: `project:${projectId}`,
      // Semicolon follows colon.
      prefix: `capability:${projectId}:`,
      stop: `capability:${projectId};`,
    },
  );
  return rows[0];
}
