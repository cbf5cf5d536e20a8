/** Budgets locked, judged and moved by one statement: starting a statement costs more than its work. */
import type { Knex } from 'knex';

/**
 * As in migration 0006, by one statement where all budgets are there: `moved` between free and reserved, `spent`, and
 * `wanted`, which is reserved in all of them or in none. A mark is set when spending passes it, and a run's log tells
 * it. A lone claim that has no room even when nothing is reserved marks the budget as reached.
 * @returns null, or the tightest scope that has no room for what is wanted
 */
const applyBudgets = `
create or replace function apply_budgets(p_scopes text[], p_windows date[], p_moved bigint[], p_spent bigint[],
  p_wanted bigint[], p_is_lone boolean) returns jsonb language plpgsql as $$
declare
  v_now timestamptz := clock_timestamp();
  v_known int;
  v_refusal jsonb;
begin
  select count(*) into v_known from unnest(p_scopes, p_windows) m (scope, window_start)
    join budget b on b.scope = m.scope and b.window_start = m.window_start;
  if v_known < cardinality(p_scopes) then -- before any is locked, in their order
    perform open_budget(m.scope, m.window_start) from (
      select * from unnest(p_scopes, p_windows) m (scope, window_start)
      order by scope collate "C", window_start) m;
  end if;
  with locked as materialized (
    select b.scope, b.window_start, b.limit_nano, b.spent_nano + m.spent as spent, b.reserved_nano + m.moved as reserved,
      b.reached_50_at, b.reached_80_at, b.reached_100_at, m.wanted, m.moved <> 0 or m.spent <> 0 as is_moved
    from unnest(p_scopes, p_windows, p_moved, p_spent, p_wanted) m (scope, window_start, moved, spent, wanted)
    join budget b on b.scope = m.scope and b.window_start = m.window_start
    order by b.scope, b.window_start for update of b
  ), refused as materialized (
    select l.* from locked l where l.wanted > 0 and l.spent + l.reserved + l.wanted > l.limit_nano
    order by l.limit_nano - l.spent - l.reserved limit 1
  ), changed as (
    update budget b set spent_nano = l.spent,
      reserved_nano = l.reserved + case when r.scope is null then l.wanted else 0 end,
      reached_50_at = coalesce(l.reached_50_at, case when l.spent >= l.limit_nano * 0.5 then v_now end),
      reached_80_at = coalesce(l.reached_80_at, case when l.spent >= l.limit_nano * 0.8 then v_now end),
      reached_100_at = coalesce(l.reached_100_at, case when l.spent >= l.limit_nano
        or (p_is_lone and r.scope is not null and l.spent + l.wanted > l.limit_nano) then v_now end)
    from locked l left join refused r on true
    where b.scope = l.scope and b.window_start = l.window_start and (l.is_moved or r.scope is null or p_is_lone)
  )
  select jsonb_build_object('scope', split_part(r.scope, ':', 1), 'limit_nano', r.limit_nano::text,
      'spent_nano', r.spent::text, 'reserved_nano', r.reserved::text,
      'resets_at', case when r.window_start <> '-infinity' then day_start(r.window_start + 1, coalesce(
        (select timezone from project where 'project:' || project_id = r.scope), 'UTC')) end)
    into v_refusal from refused r;

  if exists (select 1 from unnest(p_scopes) s where s like 'run:%') then
    insert into event (run_id, type, data)
    select substr(b.scope, 5), 'run.budget_reached', jsonb_build_object('percent', mark.percent,
        'limit_usd', b.limit_nano / 1000000000.0, 'spent_usd', b.spent_nano / 1000000000.0)
      || case when mark.percent = 100 and v_refusal is not null
        then jsonb_build_object('refused_usd', m.wanted / 1000000000.0) else '{}' end
    from unnest(p_scopes, p_windows, p_wanted) m (scope, window_start, wanted)
    join budget b on b.scope = m.scope and b.window_start = m.window_start
    cross join lateral (values (50, b.reached_50_at), (80, b.reached_80_at), (100, b.reached_100_at)) mark (percent, at)
    where m.scope like 'run:%' and mark.at = v_now order by b.scope, mark.percent;
  end if;
  return v_refusal;
end $$;
`;

/** Whether money is short for what a claim has reserved: there is no room for nine more like it. */
const isTight = `
create function is_tight(p_claim claim_request, p_now timestamptz) returns boolean language sql as $$
  select p_claim.reserved_nano > 0 and exists (
    select 1 from demand_of(array[p_claim], p_now) d
    join budget b on b.scope = d.scope and b.window_start = d.window_start
    where b.spent_nano + b.reserved_nano + 9 * p_claim.reserved_nano > b.limit_nano)
$$;
`;

export const moveBudgetsAtOnce = {
  name: '0007-move-budgets-at-once',
  up: async (db: Knex): Promise<void> => {
    for (const part of [applyBudgets, isTight]) await db.raw(part);
  },
};
