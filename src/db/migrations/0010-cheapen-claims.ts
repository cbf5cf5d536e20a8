/**
 * A cheaper statement of paid calls. Checks of values compare with array constants, whose text Postgres reads faster; it
 * reads it for every statement. Calls with the same budgets are summed before their scopes are named, and the words of
 * a refusal are computed only for one.
 */
import type { Knex } from 'knex';
import { changeTables } from './gentle-steps.ts';

/** By table and column, in the order of the tables' columns. */
const valuesOf: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  attempt: {
    state: 'reserved,dispatched,settled,released,lost,cached',
    certainty: 'exact,estimated',
    ambiguity: 'not_sent,rejected,overloaded,ambiguous,answered',
  },
  ledger_entry: { kind: 'reserve,settle,release,adjust', certainty: 'exact,estimated' },
  step: {
    state: 'ready,running,retrying,waiting,in_review,succeeded,failed,unknown,skipped,cancelled,reused',
    awaiting: 'review,budget,capability,time,run',
  },
};

const functions = `
create or replace function apply_budgets(p_scopes text[], p_windows date[], p_moved bigint[], p_spent bigint[],
  p_wanted bigint[], p_is_lone boolean) returns jsonb language plpgsql as $$
declare
  v_now timestamptz := clock_timestamp();
  v_known int;
  v_refused record;
  v_is_scoped boolean;
  v_refusal jsonb;
begin
  select count(*) into v_known from unnest(p_scopes, p_windows) m (scope, window_start)
    where exists (select 1 from budget b where b.scope = m.scope and b.window_start = m.window_start offset 0);
  if v_known < cardinality(p_scopes) then -- before any is locked, in their order
    perform open_budget(m.scope, m.window_start) from (
      select * from unnest(p_scopes, p_windows) m (scope, window_start)
      order by scope collate "C", window_start) m;
  end if;
  with locked as materialized (
    select b.scope, b.window_start, b.limit_nano, b.spent_nano + m.spent as spent, b.reserved_nano + m.moved as reserved,
      b.soft, b.reached_50_at, b.reached_80_at, b.reached_100_at, m.wanted, m.moved <> 0 or m.spent <> 0 as is_moved
    from (
      select * from unnest(p_scopes, p_windows, p_moved, p_spent, p_wanted) m (scope, window_start, moved, spent, wanted)
      order by m.scope collate "C", m.window_start) m
    cross join lateral (
      select * from budget b where b.scope = m.scope and b.window_start = m.window_start for update) b
  ), refused as materialized (
    select l.* from locked l where l.wanted > 0 and l.spent + l.reserved + l.wanted > l.limit_nano
    order by l.limit_nano - l.spent - l.reserved limit 1
  ), changed as (
    update budget b set spent_nano = l.spent,
      reserved_nano = l.reserved + case when r.scope is null then l.wanted else 0 end,
      reached_50_at = coalesce(l.reached_50_at, case when l.spent >= l.limit_nano * 0.5 then v_now end),
      reached_80_at = coalesce(l.reached_80_at, case when l.spent >= l.limit_nano * l.soft then v_now end),
      reached_100_at = coalesce(l.reached_100_at, case when l.spent >= l.limit_nano
        or (p_is_lone and r.scope is not null and l.spent + l.wanted > l.limit_nano) then v_now end)
    from locked l left join refused r on true
    where b.scope = l.scope and b.window_start = l.window_start and b.scope = any (p_scopes)
      and b.window_start = any (p_windows) and (l.is_moved or r.scope is null or p_is_lone)
  )
  select r.* into v_refused from refused r;
  if v_refused.scope is not null then -- apart: to prepare these expressions would take time in every call
    v_is_scoped := v_refused.scope like 'budget:%';
    v_refusal := jsonb_build_object('scope', split_part(v_refused.scope, ':', case when v_is_scoped then 4 else 1 end),
      'run_id', case when v_refused.scope like 'run:%' then substr(v_refused.scope, 5) end,
      'limit_nano', v_refused.limit_nano::text, 'spent_nano', v_refused.spent::text,
      'reserved_nano', v_refused.reserved::text,
      'budget', case when v_is_scoped then name_of_budget(v_refused.scope) end,
      'period', case when v_is_scoped then split_part(v_refused.scope, ':', 3) end,
      'resets_at', case when v_refused.window_start <> '-infinity' then day_start(
        case when v_is_scoped and split_part(v_refused.scope, ':', 3) = 'month'
          then (v_refused.window_start + interval '1 month')::date else v_refused.window_start + 1 end,
        coalesce((select timezone from project
          where project_id = split_part(v_refused.scope, ':', 2) collate "default"), 'UTC')) end);
  end if;

  if p_scopes[cardinality(p_scopes)] like 'run:%' then -- in their order, runs are last
    insert into event (run_id, type, data)
    select substr(b.scope, 5), 'run.budget_reached', jsonb_build_object('percent', mark.percent,
        'limit_usd', b.limit_nano / 1000000000.0, 'spent_usd', b.spent_nano / 1000000000.0)
      || case when mark.percent = 100 and v_refusal is not null
        then jsonb_build_object('refused_usd', m.wanted / 1000000000.0) else '{}' end
    from unnest(p_scopes, p_windows, p_wanted) m (scope, window_start, wanted)
    cross join lateral (
      select * from budget b where b.scope = m.scope and b.window_start = m.window_start offset 0) b
    cross join lateral (values (50, b.reached_50_at), (80, b.reached_80_at), (100, b.reached_100_at)) mark (percent, at)
    where m.scope like 'run:%' and mark.at = v_now order by b.scope, mark.percent;
  end if;
  return v_refusal;
end $$;

create or replace function charge_budgets(p_attempt_ids text[], p_back bigint[], p_spent bigint[], p_claims claim_request[],
  p_now timestamptz) returns jsonb language plpgsql as $$
declare
  v_scopes text[];
  v_windows date[];
  v_moved bigint[];
  v_spent bigint[];
  v_wanted bigint[];
begin
  select array_agg(t.scope), array_agg(t.window_start), array_agg(t.moved), array_agg(t.spent), array_agg(t.wanted)
    into v_scopes, v_windows, v_moved, v_spent, v_wanted from (
      select c.scope, c.window_start, sum(c.moved)::bigint as moved, sum(c.spent)::bigint as spent,
        sum(c.wanted)::bigint as wanted
      from (
        select s.scope, s.window_start, k.moved, k.spent, k.wanted from (
          select m.project_id, m.capability, m.run_id, m.day, m.utc_day, m.budgets, sum(m.moved)::bigint as moved,
            sum(m.spent)::bigint as spent, sum(m.wanted)::bigint as wanted
          from (
            select a.project_id, a.capability, a.run_id, a.budget_window as day,
              (a.started_at at time zone 'UTC')::date as utc_day, a.budgets, m.back as moved, m.spent, 0::bigint as wanted
            from unnest(p_attempt_ids, p_back, p_spent) m (attempt_id, back, spent)
            cross join lateral (select * from attempt a where a.attempt_id = m.attempt_id offset 0) a
            union all
            select x.project_id, x.capability, x.run_id, (p_now at time zone p.timezone)::date,
              (p_now at time zone 'UTC')::date, x.budgets, 0, 0, x.reserved_nano
            from unnest(p_claims) x join project p using (project_id) where x.reserved_nano > 0
          ) m group by 1, 2, 3, 4, 5, 6) k
        cross join lateral all_budget_scopes(k.project_id, k.capability, k.run_id, k.day, k.utc_day, k.budgets) s
      ) c group by 1, 2 order by c.scope collate "C", c.window_start) t;
  if v_scopes is null then
    return null;
  end if;
  return apply_budgets(v_scopes, v_windows, v_moved, v_spent, v_wanted, coalesce(cardinality(p_claims), 0) = 1);
end $$;
`;

/** The new check is valid for new rows at once; old ones are read beside writers. */
async function changeCheck(db: Knex, table: string, [column, list]: [string, string]): Promise<void> {
  const name = `${table}_${column}_check`;
  await changeTables(db, [
    `alter table ${table} drop constraint if exists ${name},
       add constraint ${name} check (${column} = any ('{${list}}')) not valid`,
  ]);
  await changeTables(db, [`alter table ${table} validate constraint ${name}`]);
}

export const cheapenClaims = {
  name: '0010-cheapen-claims',
  isPiecewise: true,
  up: async (db: Knex): Promise<void> => {
    await changeTables(db, [functions]);
    for (const [table, columns] of Object.entries(valuesOf)) {
      for (const values of Object.entries(columns)) await changeCheck(db, table, values);
    }
  },
};
