/**
 * A project's spending, from the sums in its budgets: a row per day, and per day and capability. The ledger is not
 * read, so the time depends only on days and capabilities. Savings are summed for today only, by an index that holds
 * nothing else.
 *
 * Paid calls are read by bucket and name. The ledger is read from the newest day on, and within a day from the newest
 * entry on: new entries never shift its pages.
 */
import type { CostPeriod, CostSeriesQuery, LedgerQuery } from '@capstan/core/contracts/money';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';

interface SpendingRow {
  readonly timezone: string;
  /** 0 = no limit. Amounts are bigint as text. */
  readonly daily_limit_nano: string;
  /** YYYY-MM-DD */
  readonly today: string;
  /** Null for `all`. */
  readonly first_day: string | null;
  readonly today_nano: string;
  readonly reserved_nano: string;
  /** The original cost of results that calls of today took from the cache. */
  readonly saved_nano: string;
  readonly spent_nano: string;
  /** Most expensive first. */
  readonly by_capability: readonly { readonly capability: string; readonly spent_nano: string }[];
}

/** Many days: reads all rows of the project, each page of the table once. */
const sumRange = `capabilities as (
  select substr(scope, length(:prefix) + 1) as capability, sum(spent_nano) as nano
  from budget where scope > :prefix and scope < :stop group by scope
)`;

/** Few days: finds the names by a loose index scan, then reads the days of each. */
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

/** @param period ends today: a calendar week starts on Monday, a month on its first, in the project's time zone */
export function readSpending(
  db: Db,
  projectId: string,
  period: CostPeriod,
): Promise<SpendingRow | undefined> {
  return query<SpendingRow>(db).first(
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
}

// The cost of paid calls, by bucket and name. Free calls are not read.

export interface CostPointRow {
  readonly name: string;
  readonly at: Date;
  /** numeric as text */
  readonly nano: string;
}

interface CostSpanRow {
  readonly timezone: string;
  /** bigint as text */
  readonly daily_limit_nano: string;
  /** YYYY-MM-DD; null for `all` without a paid call. */
  readonly first_day: string | null;
  readonly today: string;
}

/** The days of a period that ends today: a calendar week starts on Monday, a month on its first. */
export function readCostSpan(
  db: Db,
  projectId: string,
  period: CostSeriesQuery['period'],
): Promise<CostSpanRow | undefined> {
  return query<CostSpanRow>(db).first(
    `select timezone, daily_limit_nano, today::text, (case :period when 'day' then today
         when 'week' then date_trunc('week', today::timestamp)::date
         when 'month' then date_trunc('month', today::timestamp)::date
         else (select min(window_start) from budget where scope = 'project:' || project_id
           and window_start > '-infinity') end)::text as first_day
     from (select *, (now() at time zone timezone)::date as today from project where project_id = :projectId) p`,
    { projectId, period },
  );
}

/**
 * The rest of the call's scope with this prefix. A call of a run belongs to the key and the labels of the run at the top.
 * @param ofRun of that run, `t`
 */
function nameBy(prefix: string, ofRun: string): string {
  return `coalesce(
    (select substr(s, length(${prefix}) + 1) from unnest(a.scopes) s where starts_with(s, ${prefix}) limit 1),
    (select ${ofRun} from run r join run t on t.run_id = coalesce(r.ancestors[1], r.run_id) where r.run_id = a.run_id), '')`;
}

const names = {
  capability: 'a.capability',
  endpoint: 'a.endpoint',
  pipeline: `coalesce((select r.pipeline from run r where r.run_id = a.run_id), '')`,
  key: nameBy(`'key:'`, 't.key_id'),
  user: nameBy(`'user:'`, 'null'),
} as const;
const byLabel = nameBy(`'label:' || :label || '='`, 't.labels ->> :label');

function isLabel(by: CostSeriesQuery['by']): by is `label:${string}` {
  return by.startsWith('label:');
}

const begins = {
  day: '(a.budget_window::timestamp at time zone :timezone)',
  hour: `date_trunc('hour', a.started_at, :timezone)`,
} as const;

/** @param span days, both included */
export function listCostPoints(
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
  return query<CostPointRow>(db).all(
    `select ${isLabel(by) ? byLabel : names[by]} as name, ${begins[bucket]} as at, sum(a.settled_nano)::text as nano
     from attempt a
     where a.reserved_nano > 0 and a.settled_nano > 0 and a.project_id = :projectId
       and a.budget_window between :from::date and :to::date
     group by 1, 2 order by 2`,
    { projectId, timezone, from, to, ...(isLabel(by) ? { label: by.slice('label:'.length) } : {}) },
  );
}

export interface LedgerRow {
  readonly entry_id: string;
  readonly at: Date;
  readonly attempt_id: string;
  readonly kind: 'reserve' | 'settle' | 'release' | 'adjust';
  /** bigint as text */
  readonly amount_nano: string;
  /** The part of it above the reservation; null if there is none, or if the attempt has been deleted. */
  readonly overrun_nano: string | null;
  readonly certainty: 'exact' | 'estimated';
  /** YYYY-MM-DD */
  readonly day: string;
  readonly capability: string;
  /** Null, with the run, if the attempt has been deleted. */
  readonly endpoint: string | null;
  readonly run_id: string | null;
  readonly step_id: string | null;
}

/** The last entry of the previous page. */
export type LedgerPlace = Pick<LedgerRow, 'day' | 'entry_id'>;

type LedgerFilter = Pick<LedgerQuery, 'since' | 'until' | 'kind' | 'capability' | 'run_id'> & {
  readonly after: LedgerPlace | null;
  readonly limit: number;
};

/** Postgres has no year 0. */
function toDay(date: string): string {
  return date < '0001-01-01' ? '0001-01-01' : date;
}

/**
 * A run has few entries. All are read through its attempts; `offset 0` stops the planner from searching the ledger for
 * them.
 */
const ofRun = `(
  select e.* from attempt o join ledger_entry e using (attempt_id, budget_window) where o.run_id = :run_id offset 0
)`;

/** `since` and `until` are days, both included. */
export function listLedger(
  db: Db,
  projectId: string,
  { after, limit, since, until, kind, capability, run_id }: LedgerFilter,
): Promise<readonly LedgerRow[]> {
  const conditions = [
    'l.project_id = :projectId',
    since !== undefined && 'l.budget_window >= cast(:since as date)',
    until !== undefined && 'l.budget_window <= cast(:until as date)',
    kind !== undefined && 'l.kind = :kind',
    capability !== undefined && 'l.capability = :capability',
    after !== null && '(l.budget_window, l.entry_id) < (cast(:day as date), cast(:entry_id as bigint))',
  ].filter((condition) => condition !== false);
  return query<LedgerRow>(db).all(
    `select l.entry_id, l.at, l.attempt_id, l.kind, l.amount_nano, l.certainty, l.budget_window::text as day,
       l.capability, a.endpoint, a.run_id, a.step_id,
       case when l.kind = 'settle' and l.amount_nano > a.reserved_nano then l.amount_nano - a.reserved_nano
         when l.kind = 'adjust' and l.amount_nano > 0 then l.amount_nano end as overrun_nano
     from ${run_id === undefined ? 'ledger_entry' : ofRun} l left join attempt a using (attempt_id)
     where ${conditions.join(' and ')}
     order by l.budget_window desc, l.entry_id desc limit :limit`,
    {
      projectId,
      limit,
      ...after,
      ...(since === undefined ? {} : { since: toDay(since) }),
      ...(until === undefined ? {} : { until: toDay(until) }),
      ...(kind === undefined ? {} : { kind }),
      ...(capability === undefined ? {} : { capability }),
      ...(run_id === undefined ? {} : { run_id }),
    },
  );
}
