/**
 * A project's spending, from the sums in its budgets: a row per day, and per day and capability. The ledger is not
 * read, so the time depends only on days and capabilities. Savings are summed for today only, by an index that holds
 * nothing else.
 *
 * The ledger is read from the newest day on, and within a day from the newest entry on: new entries never shift its
 * pages.
 */
import type { LedgerQuery } from '@capstan/core/contracts/money';
import type { GrownColumns } from '../attempt/attempt.ts';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';

export interface ProjectDays {
  readonly timezone: string;
  /** bigint as text; 0 = no limit. */
  readonly daily_limit_nano: string;
  /** YYYY-MM-DD */
  readonly today: string;
  /** Of its first paid call; null without any. */
  readonly first: string | null;
  readonly now: Date;
}

export function readProjectDays(db: Db, projectId: string): Promise<ProjectDays | undefined> {
  return query<ProjectDays>(db).first(
    `select timezone, daily_limit_nano, (now() at time zone timezone)::date::text as today, now() as now,
       (select min(window_start) from budget where scope = 'project:' || project_id
         and window_start > '-infinity')::text as first
     from project where project_id = ?`,
    [projectId],
  );
}

interface SpendingRow {
  /** Amounts are bigint as text. */
  readonly today_nano: string;
  readonly reserved_nano: string;
  /** The original cost of results that calls of today took from the cache. */
  readonly saved_nano: string;
  readonly spent_nano: string;
  /** Most expensive first. */
  readonly by_capability: readonly { readonly capability: string; readonly spent_nano: string }[];
}

interface SpendingSpan extends Pick<ProjectDays, 'today' | 'timezone'> {
  readonly from: string | null;
  readonly to: string;
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
    where b.scope = n.scope and b.window_start between span.first_day and span.last_day) s
)`;

/** @param span `from` and `to` are included; null: from the first paid call on */
export async function readSpending(
  db: Db,
  projectId: string,
  { from, to, today, timezone }: SpendingSpan,
): Promise<SpendingRow> {
  return query<SpendingRow>(db).one(
    `with recursive span as materialized (
       select cast(:from as date) as first_day, cast(:to as date) as last_day, cast(:today as date) as today
     ), ${from === null ? sumRange : sumDays}
     select (select coalesce(sum(a.saved_nano), 0) from attempt a where a.project_id = :projectId and a.state = 'cached'
         and a.started_at >= day_start(today, :timezone)) as saved_nano,
       coalesce(days.today_nano, 0) as today_nano, coalesce(days.reserved_nano, 0) as reserved_nano,
       coalesce(days.spent_nano, 0) as spent_nano, coalesce(parts.by_capability, '[]') as by_capability
     from span
     cross join lateral (
       select sum(spent_nano) filter (where window_start between coalesce(first_day, '-infinity') and last_day)
           as spent_nano,
         sum(spent_nano) filter (where window_start = today) as today_nano,
         sum(reserved_nano) filter (where window_start = today) as reserved_nano
       from budget where scope = :scope and window_start between least(coalesce(first_day, '-infinity'), today)
         and greatest(last_day, today)) days
     cross join (
       select jsonb_agg(jsonb_build_object('capability', capability, 'spent_nano', nano::text)
         order by nano desc, capability) as by_capability from capabilities where nano > 0) parts`,
    {
      projectId,
      from,
      to,
      today,
      timezone,
      scope: `project:${projectId}`,
      // Semicolon follows colon.
      prefix: `capability:${projectId}:`,
      stop: `capability:${projectId};`,
    },
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
  /** Of the reservation, if it grows with its call and the attempt has not been deleted. */
  readonly grown: GrownColumns | null;
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
         when l.kind = 'adjust' and l.amount_nano > 0 then l.amount_nano end as overrun_nano,
       case when l.kind = 'reserve' and a.expected_nano is not null then json_build_object('started_at', a.started_at,
         'reserved_nano', a.reserved_nano::text, 'expected_nano', a.expected_nano::text, 'pieces', a.pieces,
         'piece_ms', a.piece_ms, 'piece_nano', a.piece_nano::text[], 'is_stopped', a.is_stopped) end as grown
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
