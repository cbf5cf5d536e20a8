-- schema 1

-- The functions by which claims and ends of attempts move money. The lock order (L1 to L6) is in claims.sql.

-- Returns the first instant of a local day: where clocks go back over midnight, midnight occurs twice. It takes no
-- lock.
create or replace function day_start(p_day date, p_zone text) returns timestamptz language sql stable as $$
  select m.midnight - case when ((m.midnight - interval '1 hour') at time zone p_zone)::date = p_day
    then interval '1 hour' else interval '0' end
  from (select p_day::timestamp at time zone p_zone) m (midnight)
$$;

-- Returns the budgets that a call is charged to: the global, the project's, the capability's, its run's and those of
-- the runs above. It takes no lock.
create or replace function budget_scopes(p_project text, p_capability text, p_run text, p_day date, p_utc_day date)
returns table (scope text, window_start date) language sql stable as $$
  select s.scope, s.window_start from (values
    ('global', p_utc_day),
    ('project:' || p_project, p_day),
    ('capability:' || p_project || ':' || p_capability, p_day),
    ('run:' || p_run, '-infinity'::date)) s (scope, window_start)
  where s.scope is not null
  union all
  select 'run:' || a.run_id, '-infinity'::date from run r cross join lateral unnest(r.ancestors) a (run_id)
  where r.run_id = p_run
$$;

-- Returns the budgets that a call is charged to, with the scoped ones that it was admitted under. It takes no lock.
create or replace function all_budget_scopes(p_project text, p_capability text, p_run text, p_day date, p_utc_day date,
  p_budgets text[])
returns table (scope text, window_start date) language sql stable as $$
  select s.scope, s.window_start from budget_scopes(p_project, p_capability, p_run, p_day, p_utc_day) s
  union all
  select 'budget:' || p_project || ':' || b.name,
    case when b.name like 'total:%' then '-infinity' when b.name like 'month:%' then date_trunc('month', p_day::timestamp)::date else p_day end
  from unnest(p_budgets) b (name)
$$;

-- Names in each paid claim the scoped budgets that match it, once for the whole statement: a budget that is added or
-- removed meanwhile holds for later claims. It takes no lock.
create or replace function draw_budgets(p_claims claim_request[]) returns claim_request[] language plpgsql as $$
declare
  v_drawn claim_request[] := '{}';
  c claim_request;
begin
  foreach c in array p_claims loop
    if c.reserved_nano > 0 then
      c.budgets := (select array_agg(b.period || ':' || b.scope) from scoped_budget b
        where b.project_id = c.project_id and b.scope = any (
          array['capability:' || c.capability] || coalesce(c.scopes, run_scopes(c.run_id))));
    end if;
    v_drawn := v_drawn || c;
  end loop;
  return v_drawn;
end $$;

-- Returns the budgets that claims are charged to, and what each holds and expects for them. It takes no lock.
create or replace function budget_demand(p_claims claim_request[], p_now timestamptz)
returns table (scope text, window_start date, nano bigint, rest bigint, variance double precision)
language sql stable as $$
  select s.scope, s.window_start, sum(c.reserved_nano + coalesce(c.risk_nano, 0))::bigint,
    sum(coalesce(c.expected_nano - c.reserved_nano, 0))::bigint, sum(coalesce(c.variance, 0))
  from unnest(p_claims) c join project p using (project_id)
  cross join lateral all_budget_scopes(c.project_id, c.capability, c.run_id,
    (p_now at time zone p.timezone)::date, (p_now at time zone 'UTC')::date, c.budgets) s
  where c.reserved_nano > 0 group by 1, 2
$$;

-- The scope of a scoped budget, from the name of its row: `label:team=ads`.
create or replace function name_of_budget(p_scope text) returns text language sql immutable as $$
  select regexp_replace(p_scope, '^budget:[^:]*:[^:]*:', '')
$$;

-- Adds a budget's row for the first call of its window, with the current limit. It waits for a concurrent change of the
-- limit: it locks the source of the limit for share, except a run's. Callers open budgets in the order of their key,
-- and before they lock any.
create or replace function open_budget(p_scope text, p_window date) returns void language plpgsql as $$
declare
  v_limit bigint;
  v_soft numeric := 0.8;
  v_is_scoped boolean := p_scope like 'budget:%';
begin
  if exists (select 1 from budget b where b.scope = p_scope and b.window_start = p_window) then
    return;
  end if;
  case split_part(p_scope, ':', 1)
    when 'global' then
      select b.limit_nano into v_limit from budget b
        where b.scope = 'global' and b.window_start = '-infinity' for share;
    when 'project' then
      select nullif(p.daily_limit_nano, 0) into v_limit from project p
        where p.project_id = substr(p_scope, 9) for share;
    when 'run' then
      select ceil(r.budget_ceiling_usd * 1000000000)::bigint into v_limit from run r
        where r.run_id = substr(p_scope, 5);
    when 'budget' then
      select s.limit_nano, s.soft into v_limit, v_soft from scoped_budget s
        where s.project_id = split_part(p_scope, ':', 2) and s.period = split_part(p_scope, ':', 3)
          and s.scope = name_of_budget(p_scope) for share;
    else null;
  end case;
  insert into budget (scope, window_start, limit_nano, soft, announced)
    values (p_scope, p_window, v_limit, coalesce(v_soft, 0.8), case when v_is_scoped then 50 else 0 end)
    on conflict do nothing;
end $$;

-- Moves money in many budgets at once: `moved` between free and reserved, `spent`, and `wanted`, which is reserved in
-- all of them or in none. `rest` and `variance` move the amount that open calls are expected to hold beyond their reservations, and
-- `wanted_rest` and `wanted_variance` are the part of `wanted`; with p_admits it needs room for that, too (G4, with the
-- `certainty` of core/money/holds.ts). A variance without a rest comes from rounding. `p_risk`
-- is of a lone claim, null for several: the part of `wanted` that needs no room (B1).
-- A mark is set when spending passes it, and logged for a run's budget. A lone claim that has no room even when nothing
-- is reserved marks the budget as reached. One statement locks, checks and moves: starting a statement costs more than
-- its work. It opens missing budgets, then locks all of them; scopes come in their order
-- (L4). It returns null, or the tightest scope without room for `wanted`; for a run also its id, as it may be one
-- above.
create or replace function apply_budgets(p_moves budget_move[], p_admits boolean, p_risk bigint)
returns jsonb language plpgsql as $$
declare
  v_now timestamptz := clock_timestamp();
  v_scopes text[];
  v_windows date[];
  v_known int;
  v_refused record;
  v_is_scoped boolean;
  v_refusal jsonb;
begin
  select array_agg(m.scope), array_agg(m.window_start), count(*) filter (where exists (
      select 1 from budget b where b.scope = m.scope and b.window_start = m.window_start offset 0))
    into v_scopes, v_windows, v_known from unnest(p_moves) m;
  if v_known < cardinality(p_moves) then -- before any is locked, in their order
    perform open_budget(m.scope, m.window_start) from (
      select * from unnest(p_moves) m order by scope collate "C", window_start) m;
  end if;
  with locked as materialized (
    select b.scope, b.window_start, b.limit_nano, b.spent_nano + m.spent as spent, b.reserved_nano + m.moved as reserved,
      b.rest_nano + m.rest as rest, greatest(b.variance + m.variance, 0) as variance, b.soft, b.reached_50_at,
      b.reached_80_at, b.reached_100_at, m.wanted, m.wanted_rest, m.wanted_variance,
      m.moved <> 0 or m.spent <> 0 as is_moved
    from (select * from unnest(p_moves) m order by m.scope collate "C", m.window_start) m
    cross join lateral (
      select * from budget b where b.scope = m.scope and b.window_start = m.window_start for update) b
  ), refused as materialized (
    select l.* from locked l
    where l.wanted > 0 and l.spent + l.reserved + l.wanted - coalesce(p_risk, 0) + case
        when p_admits and (l.rest <> 0 or l.wanted_rest <> 0 or l.wanted_variance <> 0) then greatest(0,
          l.rest + l.wanted_rest + ceil(3 * sqrt(l.variance + l.wanted_variance))) else 0 end > l.limit_nano
    order by l.limit_nano - l.spent - l.reserved limit 1
  ), changed as (
    update budget b set spent_nano = l.spent,
      reserved_nano = l.reserved + case when r.scope is null then l.wanted else 0 end,
      rest_nano = l.rest + case when r.scope is null then l.wanted_rest else 0 end,
      variance = greatest(l.variance + case when r.scope is null then l.wanted_variance else 0 end, 0),
      reached_50_at = coalesce(l.reached_50_at, case when l.spent >= l.limit_nano * 0.5 then v_now end),
      reached_80_at = coalesce(l.reached_80_at, case when l.spent >= l.limit_nano * l.soft then v_now end),
      reached_100_at = coalesce(l.reached_100_at, case when l.spent >= l.limit_nano
        or (r.scope is not null and l.spent + l.wanted - p_risk > l.limit_nano) then v_now end)
    from locked l left join refused r on true
    where b.scope = l.scope and b.window_start = l.window_start and b.scope = any (v_scopes)
      and b.window_start = any (v_windows) and (l.is_moved or r.scope is null or p_risk is not null)
  )
  select r.* into v_refused from refused r;
  if v_refused.scope is not null then -- apart: to prepare these expressions would take time in every call
    v_is_scoped := v_refused.scope like 'budget:%';
    v_refusal := jsonb_build_object('scope', split_part(v_refused.scope, ':', case when v_is_scoped then 4 else 1 end),
      'run_id', case when v_refused.scope like 'run:%' then substr(v_refused.scope, 5) end,
      'limit_nano', v_refused.limit_nano::text, 'spent_nano', v_refused.spent::text,
      'reserved_nano', v_refused.reserved::text,
      'rest_nano', case when p_admits then greatest(0, v_refused.rest)::text else '0' end,
      'budget', case when v_is_scoped then name_of_budget(v_refused.scope) end,
      'period', case when v_is_scoped then split_part(v_refused.scope, ':', 3) end,
      'resets_at', case when v_refused.window_start <> '-infinity' then day_start(
        case when v_is_scoped and split_part(v_refused.scope, ':', 3) = 'month'
          then (v_refused.window_start + interval '1 month')::date else v_refused.window_start + 1 end,
        coalesce((select timezone from project
          where project_id = split_part(v_refused.scope, ':', 2) collate "default"), 'UTC')) end);
  end if;

  if v_scopes[cardinality(v_scopes)] like 'run:%' then -- in their order, runs are last
    insert into event (run_id, type, data)
    select substr(b.scope, 5), 'run.budget_reached', jsonb_build_object('percent', mark.percent,
        'limit_usd', b.limit_nano / 1000000000.0, 'spent_usd', b.spent_nano / 1000000000.0)
      || case when mark.percent = 100 and v_refusal is not null
        then jsonb_build_object('refused_usd', (m.wanted - coalesce(p_risk, 0)) / 1000000000.0) else '{}' end
    from unnest(p_moves) m
    cross join lateral (
      select * from budget b where b.scope = m.scope and b.window_start = m.window_start offset 0) b
    cross join lateral (values (50, b.reached_50_at), (80, b.reached_80_at), (100, b.reached_100_at)) mark (percent, at)
    where m.scope like 'run:%' and mark.at = v_now order by b.scope, mark.percent;
  end if;
  return v_refusal;
end $$;

-- Moves money without a check of the room. It locks the budgets, whose scopes come in their order (L4).
create or replace function move_budgets(p_scopes text[], p_windows date[], p_reserved bigint[], p_spent bigint[],
  p_rest bigint[] default null, p_variance double precision[] default null)
returns void language sql as $$
  select apply_budgets(array_agg((m.scope, m.window_start, m.reserved, m.spent, 0, coalesce(m.rest, 0),
    coalesce(m.variance, 0), 0, 0)::budget_move), false, null)
  from unnest(p_scopes, p_windows, p_reserved, p_spent, p_rest, p_variance)
    m (scope, window_start, reserved, spent, rest, variance)
$$;

-- Books the refunds and costs of ended attempts, then reserves money for all claims or for none. It locks all their
-- budgets, in the order of their key (L4). Calls with the same budgets are summed before their scopes are named: most
-- calls of a batch have. It returns null, or the tightest scope that has no room for the claims.
create or replace function charge_budgets(p_attempt_ids text[], p_back bigint[], p_spent bigint[], p_claims claim_request[],
  p_now timestamptz) returns jsonb language plpgsql as $$
declare
  v_moves budget_move[];
begin
  select array_agg(t::budget_move) into v_moves from (
      select c.scope, c.window_start, sum(c.moved)::bigint as moved, sum(c.spent)::bigint as spent,
        sum(c.wanted)::bigint as wanted, sum(c.rest)::bigint as rest, sum(c.variance) as variance,
        sum(c.wanted_rest)::bigint as wanted_rest, sum(c.wanted_variance) as wanted_variance
      from (
        select s.scope, s.window_start, k.moved, k.spent, k.wanted, k.rest, k.variance, k.wanted_rest, k.wanted_variance
        from (
          select m.project_id, m.capability, m.run_id, m.day, m.utc_day, m.budgets, sum(m.moved)::bigint as moved,
            sum(m.spent)::bigint as spent, sum(m.wanted)::bigint as wanted, sum(m.rest)::bigint as rest,
            sum(m.variance) as variance, sum(m.wanted_rest)::bigint as wanted_rest,
            sum(m.wanted_variance) as wanted_variance
          from (
            select a.project_id, a.capability, a.run_id, a.budget_window as day,
              (a.started_at at time zone 'UTC')::date as utc_day, a.budgets, m.back as moved, m.spent, 0::bigint as wanted,
              case when m.back < 0 then coalesce(a.reserved_nano - a.expected_nano, 0) else 0 end as rest,
              case when m.back < 0 then -a.variance else 0 end as variance, 0 as wanted_rest, 0 as wanted_variance
            from unnest(p_attempt_ids, p_back, p_spent) m (attempt_id, back, spent)
            cross join lateral (select * from attempt a where a.attempt_id = m.attempt_id offset 0) a
            union all
            select x.project_id, x.capability, x.run_id, (p_now at time zone p.timezone)::date,
              (p_now at time zone 'UTC')::date, x.budgets, 0, 0, x.reserved_nano + coalesce(x.risk_nano, 0), 0, 0,
              coalesce(x.expected_nano - x.reserved_nano, 0), coalesce(x.variance, 0)
            from unnest(p_claims) x join project p using (project_id) where x.reserved_nano > 0
          ) m group by 1, 2, 3, 4, 5, 6) k
        cross join lateral all_budget_scopes(k.project_id, k.capability, k.run_id, k.day, k.utc_day, k.budgets) s
      ) c group by 1, 2 order by c.scope collate "C", c.window_start) t;
  if v_moves is null then
    return null;
  end if;
  return apply_budgets(v_moves, true,
    case when cardinality(p_claims) = 1 then coalesce(p_claims[1].risk_nano, 0) end);
end $$;

-- Releases the reservations of refused claims. It locks their budgets, in the order of their key (L4).
create or replace function release_budgets(p_claims claim_request[], p_now timestamptz) returns void language sql as $$
  select move_budgets(array_agg(d.scope), array_agg(d.window_start), array_agg(-d.nano), array_agg(0::bigint),
    array_agg(-d.rest), array_agg(-d.variance))
  from (select * from budget_demand(p_claims, p_now) order by scope collate "C", window_start) d having count(*) > 0
$$;
