/**
 * Moves money in many budgets at once: `moved` between free and reserved, `spent`, and `wanted`, which is reserved in all
 * of them or in none. A mark is set when spending passes it, and a run's log tells it. A lone claim that has no room even
 * when nothing is reserved marks the budget as reached. One statement locks, judges and moves: starting a statement costs
 * more than its work. It opens the budgets that are missing, then locks all of them; scopes come in their order (L4).
 * It returns null, or the tightest scope that has no room for what is wanted, and of a run which one: it may be one above.
 */
export const applyBudgets = `
create function apply_budgets(p_scopes text[], p_windows date[], p_moved bigint[], p_spent bigint[],
  p_wanted bigint[], p_is_lone boolean) returns jsonb language plpgsql as $$
declare
  v_now timestamptz := clock_timestamp();
  v_known int;
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
      b.reached_50_at, b.reached_80_at, b.reached_100_at, m.wanted, m.moved <> 0 or m.spent <> 0 as is_moved
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
      reached_80_at = coalesce(l.reached_80_at, case when l.spent >= l.limit_nano * 0.8 then v_now end),
      reached_100_at = coalesce(l.reached_100_at, case when l.spent >= l.limit_nano
        or (p_is_lone and r.scope is not null and l.spent + l.wanted > l.limit_nano) then v_now end)
    from locked l left join refused r on true
    where b.scope = l.scope and b.window_start = l.window_start and b.scope = any (p_scopes)
      and b.window_start = any (p_windows) and (l.is_moved or r.scope is null or p_is_lone)
  )
  select jsonb_build_object('scope', split_part(r.scope, ':', 1),
      'run_id', case when r.scope like 'run:%' then substr(r.scope, 5) end, 'limit_nano', r.limit_nano::text,
      'spent_nano', r.spent::text, 'reserved_nano', r.reserved::text,
      'resets_at', case when r.window_start <> '-infinity' then day_start(r.window_start + 1, coalesce(
        (select timezone from project where 'project:' || project_id = r.scope), 'UTC')) end)
    into v_refusal from refused r;

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
`;
