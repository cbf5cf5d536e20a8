/**
 * Compares the budgets in use with the attempts. A claim or settlement changes both in one transaction and one
 * statement reads both, so calls in flight never look like drift. In use are the days since the day before yesterday
 * (yesterday, in every time zone) and runs that have not ended. Days have millions of calls: ended calls are summed
 * once and their sums kept (`addEnded`), so that a check reads only the calls of the last minutes.
 */
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';

export interface Drift {
  readonly scope: string;
  /** YYYY-MM-DD, or `-infinity` for a run. */
  readonly day: string;
  /** The attempts' sum minus the budget's; bigint as text. */
  readonly reserved_nano: string;
  readonly spent_nano: string;
}

/**
 * Sums of the calls that had ended at `until`. A late correction of such a call invalidates them; they are then
 * recalculated.
 */
export interface EndedSums {
  /** In Postgres' format, with microseconds. */
  readonly until: string;
  readonly rows: readonly EndedSum[];
}

interface EndedSum {
  readonly project_id: string;
  readonly capability: string;
  /** YYYY-MM-DD, as `utc_day`. */
  readonly budget_window: string;
  readonly utc_day: string;
  /** bigint as text */
  readonly spent_nano: string;
}

/** An expression, not a subquery, so that the planner can estimate how few days these are. */
const firstDay = `((now() at time zone 'UTC')::date - 2)`;
const open = `a.state in ('reserved', 'dispatched')`;
const sums = `coalesce(sum(a.reserved_nano) filter (where ${open}), 0)::bigint as reserved_nano,
  coalesce(sum(a.settled_nano) filter (where not ${open}), 0)::bigint as spent_nano`;

const paid = `a.reserved_nano > 0 and a.budget_window >= ${firstDay} - 1`;
/** A call ends after its admission, and a day begins up to 14 hours before the UTC day. */
const firstEnd = `(${firstDay} - 2)::timestamptz`;

/** An end is visible within this time after its own timestamp: no transaction lives longer. */
const settlingMinutes = 10;

function keyOf({ project_id, capability, budget_window, utc_day }: EndedSum): string {
  return JSON.stringify([project_id, capability, budget_window, utc_day]);
}

/** Sums all calls that have ended, except those of the last minutes. @param known sums that need not be read again */
export async function addEnded(db: Db, known: EndedSums | null): Promise<EndedSums> {
  const rows = await query<{ until: string; sums: EndedSum[] }>(db).all(
    `with span as materialized (
       select coalesce(:since::timestamptz, ${firstEnd}) as since,
         clock_timestamp() - interval '${settlingMinutes} minutes' as until
     ), sums as (
       select a.project_id, a.capability, a.budget_window::text, (a.started_at at time zone 'UTC')::date::text as utc_day,
         sum(a.settled_nano)::text as spent_nano
       from attempt a, span where ${paid} and a.finished_at > span.since and a.finished_at <= span.until
         and not ${open} group by 1, 2, 3, 4
     )
     select until::text, (select coalesce(json_agg(sums), '[]') from sums) as sums from span`,
    { since: known?.until ?? null },
  );
  const [{ until, sums }] = rows as [{ until: string; sums: EndedSum[] }];
  const all = new Map((known?.rows ?? []).map((row) => [keyOf(row), row]));
  for (const row of sums) {
    const before = all.get(keyOf(row))?.spent_nano ?? '0';
    all.set(keyOf(row), { ...row, spent_nano: String(BigInt(before) + BigInt(row.spent_nano)) });
  }
  return { until, rows: [...all.values()] };
}

/** The run and those below it; it searches only below a run that has started others. */
const runsBelow = `case when (select true from run c where c.parent_run_id = r.run_id limit 1)
  then with_runs_below(r.run_id) else array[r.run_id] end`;

/** @param ended sums that need not be read again; without them, all calls of these days are read */
export function findDrift(db: Db, ended: EndedSums | null = null): Promise<readonly Drift[]> {
  return query<Drift>(db).all(
    `with charged as (
       select a.project_id, a.capability, a.budget_window, (a.started_at at time zone 'UTC')::date as utc_day, ${sums}
       from attempt a where ${paid} and (a.finished_at is null or a.finished_at > coalesce(:until::timestamptz, ${firstEnd}))
       group by 1, 2, 3, 4
       union all
       select project_id, capability, budget_window, utc_day, 0, spent_nano
       from json_to_recordset(:ended::json)
         as e (project_id text, capability text, budget_window date, utc_day date, spent_nano bigint)
       where budget_window >= ${firstDay} - 1
     ), due as (
       select s.scope, s.window_start, sum(c.reserved_nano)::bigint as reserved_nano, sum(c.spent_nano)::bigint as spent_nano
       from charged c cross join lateral budget_scopes(c.project_id, c.capability, null, c.budget_window, c.utc_day) s
       where s.window_start >= ${firstDay} group by 1, 2
       union all
       select 'run:' || r.run_id, '-infinity', ${sums}
       from run r join attempt a on a.run_id = any (${runsBelow})
       where r.finished_at is null and a.reserved_nano > 0 group by r.run_id
     ), kept as (
       select b.* from budget b
       where b.window_start > '-infinity' and b.window_start >= ${firstDay}
       union all
       select b.* from run r join budget b on b.scope = 'run:' || r.run_id and b.window_start = '-infinity'
       where r.finished_at is null
     )
     select scope, window_start::text as day, reserved_nano, spent_nano from (
       select scope, window_start, coalesce(d.reserved_nano, 0) - coalesce(k.reserved_nano, 0) as reserved_nano,
         coalesce(d.spent_nano, 0) - coalesce(k.spent_nano, 0) as spent_nano
       from due d full join kept k using (scope, window_start)
     ) difference where reserved_nano <> 0 or spent_nano <> 0 order by scope collate "C", window_start`,
    { until: ended?.until ?? null, ended: JSON.stringify(ended?.rows ?? []) },
  );
}

/** Corrects the budgets to match the attempts, while calls are in flight. @returns the differences */
export async function correctDrift(db: Db): Promise<readonly Drift[]> {
  if ((await findDrift(db)).length === 0) return [];
  return db.transaction(async (trx) => {
    await trx.raw(`select pg_advisory_xact_lock(hashtextextended('budget drift', 0))`);
    const drift = await findDrift(trx);
    const of = (column: keyof Drift): string[] => drift.map((row) => row[column]);
    await trx.raw(`select open_budget(d.scope, d.day) from unnest(?::text[], ?::date[]) d (scope, day)`, [
      of('scope'),
      of('day'),
    ]);
    await trx.raw('select move_budgets(?::text[], ?::date[], ?::bigint[], ?::bigint[])', [
      of('scope'),
      of('day'),
      of('reserved_nano'),
      of('spent_nano'),
    ]);
    return drift;
  });
}
