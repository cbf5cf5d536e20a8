/**
 * Compares the budgets in use with the attempts. A claim or settlement changes both in one transaction and one
 * statement reads both, so calls in flight never look like drift. In use are the days since the day before yesterday
 * (yesterday, in every time zone), the months since theirs, and runs that have not ended. Days have millions of calls: ended calls are summed
 * once and their sums kept (`addEnded`), so that a check reads only the calls of the last minutes.
 *
 * A budget by total never ends. Its spending is compared for four weeks, within which the ledger loses no entry; later
 * only its reservations are.
 */

import type { Db } from '../connect.ts';
import { takeLock } from '../locks.ts';
import { query } from '../statements.ts';

export interface Drift {
  readonly scope: string;
  /** YYYY-MM-DD, or `-infinity` for a run. */
  readonly day: string;
  /** The attempts' sum minus the budget's; bigint as text. */
  readonly reserved_nano: string;
  readonly spent_nano: string;
  readonly rest_nano: string;
  /** No drift by itself: sums of doubles depend on their order. */
  readonly variance: number;
}

/**
 * Sums of the calls that had ended at `until`. A late correction of such a call invalidates them; they are then
 * recalculated.
 */
export interface EndedSums {
  /** In Postgres' format, with microseconds. */
  readonly until: string;
  readonly rows: readonly EndedSum[];
  readonly scoped: readonly ScopedSum[];
}

/** Calls that were admitted under the same scoped budgets. */
interface ScopedSum {
  readonly project_id: string;
  /** YYYY-MM-DD */
  readonly budget_window: string;
  readonly budgets: readonly string[];
  /** bigint as text */
  readonly spent_nano: string;
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
const sums = `coalesce(sum(a.reserved_nano + a.risk_nano) filter (where ${open}), 0)::bigint as reserved_nano,
  coalesce(sum(a.settled_nano) filter (where not ${open}), 0)::bigint as spent_nano,
  coalesce(sum(a.expected_nano - a.reserved_nano) filter (where ${open}), 0)::bigint as rest_nano,
  coalesce(sum(a.variance) filter (where ${open}), 0) as variance`;
const allSums = `sum(c.reserved_nano)::bigint as reserved_nano, sum(c.spent_nano)::bigint as spent_nano,
  sum(c.rest_nano)::bigint as rest_nano, sum(c.variance) as variance`;

const paid = `a.reserved_nano > 0 and a.budget_window >= ${firstDay} - 1`;
/** A call ends after its admission, and a day begins up to 14 hours before the UTC day. */
const firstEnd = `(${firstDay} - 2)::timestamptz`;

/** An end is visible within this time after its own timestamp: no transaction lives longer. */
const settlingMinutes = 10;

/** A scoped budget counts a month, so its calls may have been deleted: their sums are of the ledger. */
const firstMonth = `date_trunc('month', ${firstDay}::timestamp)::date`;

/** Since when a budget by total is compared as a whole: the ledger keeps entries for 30 days at least. */
const firstTotal = `(now() - interval '28 days')`;

/** The first day that has calls of a budget. */
const firstDrawn = `least(${firstMonth}, (${firstTotal} at time zone 'UTC')::date - 1)`;

/** @param until SQL of a time: calls that ended later are not included, unless deleted */
function sumLedger(until: string): string {
  return `select l.project_id, l.budget_window, l.budgets, sum(e.spent)::bigint as spent_nano
    from ledger_entry l
    cross join lateral (select sum(e.amount_nano) as spent from ledger_entry e
      where e.attempt_id = l.attempt_id and e.budget_window = l.budget_window and e.kind <> 'reserve') e
    left join lateral (select a.attempt_id, a.finished_at from attempt a where a.attempt_id = l.attempt_id offset 0) a on true
    where l.budgets is not null and l.budget_window >= ${firstDrawn}
      and (a.attempt_id is null or a.finished_at <= ${until})
    group by 1, 2, 3`;
}

function addSums<Sum extends { readonly spent_nano: string }>(
  known: readonly Sum[],
  more: readonly Sum[],
): Sum[] {
  const all = new Map<string, Sum>();
  for (const sum of [...known, ...more]) {
    const key = JSON.stringify({ ...sum, spent_nano: undefined });
    const before = BigInt(all.get(key)?.spent_nano ?? 0);
    all.set(key, { ...sum, spent_nano: String(before + BigInt(sum.spent_nano)) });
  }
  return [...all.values()];
}

/** Sums all calls that have ended, except those of the last minutes. @param known sums that need not be read again */
export async function addEnded(db: Db, known: EndedSums | null): Promise<EndedSums> {
  const row = await query<{ until: string; sums: EndedSum[]; scoped: ScopedSum[] }>(db).one(
    `with span as materialized (
       select coalesce(:since::timestamptz, ${firstEnd}) as since,
         clock_timestamp() - interval '${settlingMinutes} minutes' as until
     ), sums as (
       select a.project_id, a.capability, a.budget_window::text, (a.started_at at time zone 'UTC')::date::text as utc_day,
         sum(a.settled_nano)::text as spent_nano
       from attempt a, span where ${paid} and a.finished_at > span.since and a.finished_at <= span.until
         and not ${open} group by 1, 2, 3, 4
     ), scoped as (
       select project_id, budget_window::text, budgets, spent_nano::text from (${
         known === null
           ? sumLedger('(select until from span)')
           : `select a.project_id, a.budget_window, a.budgets, sum(a.settled_nano)::bigint as spent_nano
              from attempt a, span where a.budget_window is not null and a.budgets is not null
                and a.finished_at > span.since and a.finished_at <= span.until group by 1, 2, 3`
       }) s
     )
     select until::text, (select coalesce(json_agg(sums), '[]') from sums) as sums,
       (select coalesce(json_agg(scoped), '[]') from scoped) as scoped from span`,
    { since: known?.until ?? null },
  );
  return {
    until: row.until,
    rows: addSums(known?.rows ?? [], row.sums),
    scoped: addSums(known?.scoped ?? [], row.scoped),
  };
}

/** Whether its window is compared. @param row of a scoped budget */
function isIn(row: string): string {
  return `case split_part(${row}.scope, ':', 3) when 'total' then ${row}.scope in (select scope from total)
    when 'month' then ${row}.window_start >= ${firstMonth} else ${row}.window_start >= ${firstDay} end`;
}

/** Whether a project is not being erased, which parts the ledger from the scoped budgets. */
function isKept(projectId: string): string {
  return `(select p.erasing_since is null from project p where p.project_id = ${projectId})`;
}

/** The run and those below it; it searches only below a run that has started others. */
const runsBelow = `case when (select true from run c where c.parent_run_id = r.run_id limit 1)
  then with_runs_below(r.run_id) else array[r.run_id] end`;

/** Sums of the calls of these days. */
const chargedSums = `
  select a.project_id, a.capability, a.budget_window, (a.started_at at time zone 'UTC')::date as utc_day, ${sums}
  from attempt a where ${paid} and (a.finished_at is null or a.finished_at > coalesce(:until::timestamptz, ${firstEnd}))
  group by 1, 2, 3, 4
  union all
  select project_id, capability, budget_window, utc_day, 0, spent_nano, 0, 0
  from json_to_recordset(:ended::json)
    as e (project_id text, capability text, budget_window date, utc_day date, spent_nano bigint)
  where budget_window >= ${firstDay} - 1`;

/** Sums of the calls that are charged to scoped budgets, by these. */
function drawnSums(ended: EndedSums | null): string {
  const earlier =
    ended === null
      ? sumLedger(`'infinity'`)
      : `select project_id, budget_window, budgets, spent_nano from json_to_recordset(:scoped::json)
           as s (project_id text, budget_window date, budgets text[], spent_nano bigint)`;
  return `select project_id, budget_window, budgets, 0 as reserved_nano, spent_nano, 0 as rest_nano, 0 as variance from (${earlier}) s
    union all
    select a.project_id, a.budget_window, a.budgets, ${sums} from attempt a
    where a.reserved_nano > 0 and a.budgets is not null
      and (${open} or a.finished_at > coalesce(:until::timestamptz, 'infinity'))
    group by 1, 2, 3`;
}

/** Budgets by total that have a limit. */
const totals = `
  select b.scope, b.opened_at > ${firstTotal} as is_whole from scoped_budget s join project p using (project_id)
  join budget b on b.scope = 'budget:' || s.project_id || ':total:' || s.scope and b.window_start = '-infinity'
  where s.period = 'total' and p.erasing_since is null`;

const keptRows = `
  select b.* from budget b
  where b.window_start > '-infinity' and b.window_start >= ${firstDay} and b.scope not like 'budget:%'
  union all
  select b.* from budget b
  where b.window_start >= ${firstMonth} and b.scope like 'budget:%' and ${isIn('b')}
    and ${isKept(`split_part(b.scope, ':', 2) collate "default"`)}
  union all
  select b.* from total join budget b using (scope) where b.window_start = '-infinity'
  union all
  select b.* from run r join budget b on b.scope = 'run:' || r.run_id and b.window_start = '-infinity'
  where r.finished_at is null`;

function differenceOf(column: string): string {
  return `coalesce(d.${column}, 0) - coalesce(k.${column}, 0) as ${column}`;
}

/** @param ended sums that need not be read again; without them, all calls of these days are read */
export function findDrift(db: Db, ended: EndedSums | null = null): Promise<readonly Drift[]> {
  return query<Drift>(db).all(
    `with total as materialized (${totals}
     ), charged as (${chargedSums}
     ), drawn as (${drawnSums(ended)}
     ), due as (
       select s.scope, s.window_start, ${allSums}
       from drawn c
       cross join lateral all_budget_scopes(c.project_id, null, null, c.budget_window, null, c.budgets) s
       where s.scope like 'budget:%' and ${isIn('s')} and ${isKept('c.project_id')} group by 1, 2
       union all
       select s.scope, s.window_start, ${allSums}
       from charged c cross join lateral budget_scopes(c.project_id, c.capability, null, c.budget_window, c.utc_day) s
       where s.window_start >= ${firstDay} group by 1, 2
       union all
       select 'run:' || r.run_id, '-infinity', ${sums}
       from run r join attempt a on a.run_id = any (${runsBelow})
       where r.finished_at is null and a.reserved_nano > 0 group by r.run_id
     ), kept as (${keptRows}
     )
     select scope, window_start::text as day, reserved_nano, spent_nano, rest_nano, variance from (
       select scope, window_start, ${['reserved_nano', 'rest_nano', 'variance'].map(differenceOf).join(', ')},
         case when coalesce(t.is_whole, true) then coalesce(d.spent_nano, 0) - coalesce(k.spent_nano, 0) else 0 end as spent_nano
       from due d full join kept k using (scope, window_start) left join total t using (scope)
     ) difference where reserved_nano <> 0 or spent_nano <> 0 or rest_nano <> 0
     order by scope collate "C", window_start`,
    {
      until: ended?.until ?? null,
      ended: JSON.stringify(ended?.rows ?? []),
      ...(ended === null ? {} : { scoped: JSON.stringify(ended.scoped) }),
    },
  );
}

/** Corrects the budgets to match the attempts, while calls are in flight. @returns the differences */
export async function correctDrift(db: Db): Promise<readonly Drift[]> {
  if ((await findDrift(db)).length === 0) return [];
  return db.transaction(async (trx) => {
    await takeLock(trx, 'budget_drift');
    const drift = await findDrift(trx);
    const of = (column: keyof Drift): string[] => drift.map((row) => String(row[column]));
    await trx.raw(`select open_budget(d.scope, d.day) from unnest(?::text[], ?::date[]) d (scope, day)`, [
      of('scope'),
      of('day'),
    ]);
    const columns = ['scope', 'day', 'reserved_nano', 'spent_nano', 'rest_nano', 'variance'] as const;
    await trx.raw(
      'select move_budgets(?::text[], ?::date[], ?::bigint[], ?::bigint[], ?::bigint[], ?::float8[])',
      columns.map(of),
    );
    return drift;
  });
}
