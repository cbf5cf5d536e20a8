/** What paid calls have cost, by bucket and name. Free calls are not read. */
import type { CostSeriesQuery } from '../../contracts/money.ts';
import type { Db } from '../connect.ts';

export interface CostPointRow {
  readonly name: string;
  readonly at: Date;
  /** numeric as text */
  readonly nano: string;
}

export interface CostSpanRow {
  readonly timezone: string;
  /** bigint as text */
  readonly daily_limit_nano: string;
  /** YYYY-MM-DD; null for `all` without a paid call. */
  readonly first_day: string | null;
  readonly today: string;
}

/** The days of a period, up to today: a calendar week starts on Monday, a month on its first. */
export async function readCostSpan(
  db: Db,
  projectId: string,
  period: CostSeriesQuery['period'],
): Promise<CostSpanRow | undefined> {
  const { rows } = await db.raw<{ rows: CostSpanRow[] }>(
    `select timezone, daily_limit_nano, today::text, (case :period when 'day' then today
         when 'week' then date_trunc('week', today::timestamp)::date
         when 'month' then date_trunc('month', today::timestamp)::date
         else (select min(window_start) from budget where scope = 'project:' || project_id
           and window_start > '-infinity') end)::text as first_day
     from (select *, (now() at time zone timezone)::date as today from project where project_id = :projectId) p`,
    { projectId, period },
  );
  return rows[0];
}

const names = {
  capability: 'a.capability',
  endpoint: 'a.endpoint',
  pipeline: `coalesce((select r.pipeline from run r where r.run_id = a.run_id), '')`,
} as const;

const begins = {
  day: '(a.budget_window::timestamp at time zone :timezone)',
  hour: `date_trunc('hour', a.started_at, :timezone)`,
} as const;

/** @param span days, both included */
export async function listCostPoints(
  db: Db,
  projectId: string,
  {
    timezone,
    span: [from, to],
    bucket,
    by,
  }: {
    readonly timezone: string;
    readonly span: readonly [from: string, to: string];
    readonly bucket: CostSeriesQuery['bucket'];
    readonly by: CostSeriesQuery['by'];
  },
): Promise<readonly CostPointRow[]> {
  const { rows } = await db.raw<{ rows: CostPointRow[] }>(
    `select ${names[by]} as name, ${begins[bucket]} as at, sum(a.settled_nano)::text as nano
     from attempt a
     where a.reserved_nano > 0 and a.settled_nano > 0 and a.project_id = :projectId
       and a.budget_window between :from::date and :to::date
     group by 1, 2 order by 2`,
    { projectId, timezone, from, to },
  );
  return rows;
}
