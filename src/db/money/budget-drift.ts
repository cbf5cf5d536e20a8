/**
 * Whether the budgets that are in use say what the attempts say. A claim or settlement changes both in one transaction
 * and one statement reads both, so calls under way never look like drift. In use are the days from the day before
 * yesterday on (yesterday, in every time zone) and runs that have not ended. The calls of days are millions: each is read
 * and added up once, and only the sums are shared out to budgets.
 */
import type { Db } from '../connect.ts';

export interface Drift {
  readonly scope: string;
  /** YYYY-MM-DD, or `-infinity` for a run. */
  readonly day: string;
  /** What the attempts say more than the budget does; bigint as text. */
  readonly reserved_nano: string;
  readonly spent_nano: string;
}

/** An expression, not a subquery, so that the plan knows how few days these are. */
const firstDay = `((now() at time zone 'UTC')::date - 2)`;
const open = `a.state in ('reserved', 'dispatched')`;
const sums = `coalesce(sum(a.reserved_nano) filter (where ${open}), 0)::bigint as reserved_nano,
  coalesce(sum(a.settled_nano) filter (where not ${open}), 0)::bigint as spent_nano`;

/** With the run itself; the search is only for one that has started others. */
const runsBelow = `case when (select true from run c where c.parent_run_id = r.run_id limit 1)
  then with_runs_below(r.run_id) else array[r.run_id] end`;

export async function findDrift(db: Db): Promise<readonly Drift[]> {
  const { rows } = await db.raw<{ rows: Drift[] }>(
    `with charged as (
       select a.project_id, a.capability, a.budget_window, (a.started_at at time zone 'UTC')::date as utc_day, ${sums}
       from attempt a where a.reserved_nano > 0 and a.budget_window >= ${firstDay} - 1 group by 1, 2, 3, 4
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
  );
  return rows;
}

/** Makes the budgets say what the attempts say, beside calls under way. @returns what was wrong */
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
