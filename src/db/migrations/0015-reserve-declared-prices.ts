/**
 * Budgets reserve all that an open call may cost, so that worst cases that are too low take spent money above a limit by
 * the risk of one call at most. Overruns count by project. No claim is made for a call that is only expected.
 */
import type { Knex } from 'knex';
import { changeTables } from './gentle-steps.ts';

const tables = [
  `alter table attempt add column if not exists risk_nano bigint not null default 0 check (risk_nano >= 0)`,
  `alter table instance drop column if exists overran_at,
     add column if not exists overran jsonb not null default '{}'`,
  `drop function if exists is_tight`,
  `drop function if exists apply_budgets(text[], date[], bigint[], bigint[], bigint[], boolean)`,
  `do $$ begin
    if not exists (select from pg_attribute where attrelid = 'claim_request'::regclass and attname = 'risk_nano') then
      alter type claim_request drop attribute is_prefetch, add attribute risk_nano bigint;
    end if;
  end $$`,
];

const functions = `
create or replace function budget_demand(p_claims claim_request[], p_now timestamptz)
returns table (scope text, window_start date, nano bigint) language sql stable as $$
  select s.scope, s.window_start, sum(c.reserved_nano + coalesce(c.risk_nano, 0))::bigint
  from unnest(p_claims) c join project p using (project_id)
  cross join lateral all_budget_scopes(c.project_id, c.capability, c.run_id,
    (p_now at time zone p.timezone)::date, (p_now at time zone 'UTC')::date, c.budgets) s
  where c.reserved_nano > 0 group by 1, 2
$$;

create or replace function apply_budgets(p_scopes text[], p_windows date[], p_moved bigint[], p_spent bigint[],
  p_wanted bigint[], p_risk bigint) returns jsonb language plpgsql as $$
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
    select l.* from locked l
    where l.wanted > 0 and l.spent + l.reserved + l.wanted - coalesce(p_risk, 0) > l.limit_nano
    order by l.limit_nano - l.spent - l.reserved limit 1
  ), changed as (
    update budget b set spent_nano = l.spent,
      reserved_nano = l.reserved + case when r.scope is null then l.wanted else 0 end,
      reached_50_at = coalesce(l.reached_50_at, case when l.spent >= l.limit_nano * 0.5 then v_now end),
      reached_80_at = coalesce(l.reached_80_at, case when l.spent >= l.limit_nano * l.soft then v_now end),
      reached_100_at = coalesce(l.reached_100_at, case when l.spent >= l.limit_nano
        or (r.scope is not null and l.spent + l.wanted - p_risk > l.limit_nano) then v_now end)
    from locked l left join refused r on true
    where b.scope = l.scope and b.window_start = l.window_start and b.scope = any (p_scopes)
      and b.window_start = any (p_windows) and (l.is_moved or r.scope is null or p_risk is not null)
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
        then jsonb_build_object('refused_usd', (m.wanted - coalesce(p_risk, 0)) / 1000000000.0) else '{}' end
    from unnest(p_scopes, p_windows, p_wanted) m (scope, window_start, wanted)
    cross join lateral (
      select * from budget b where b.scope = m.scope and b.window_start = m.window_start offset 0) b
    cross join lateral (values (50, b.reached_50_at), (80, b.reached_80_at), (100, b.reached_100_at)) mark (percent, at)
    where m.scope like 'run:%' and mark.at = v_now order by b.scope, mark.percent;
  end if;
  return v_refusal;
end $$;

create or replace function move_budgets(p_scopes text[], p_windows date[], p_reserved bigint[], p_spent bigint[])
returns void language plpgsql as $$
begin
  perform apply_budgets(p_scopes, p_windows, p_reserved, p_spent, array_fill(0::bigint, array[cardinality(p_scopes)]),
    null);
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
              (p_now at time zone 'UTC')::date, x.budgets, 0, 0, x.reserved_nano + coalesce(x.risk_nano, 0)
            from unnest(p_claims) x join project p using (project_id) where x.reserved_nano > 0
          ) m group by 1, 2, 3, 4, 5, 6) k
        cross join lateral all_budget_scopes(k.project_id, k.capability, k.run_id, k.day, k.utc_day, k.budgets) s
      ) c group by 1, 2 order by c.scope collate "C", c.window_start) t;
  if v_scopes is null then
    return null;
  end if;
  return apply_budgets(v_scopes, v_windows, v_moved, v_spent, v_wanted,
    case when cardinality(p_claims) = 1 then coalesce(p_claims[1].risk_nano, 0) end);
end $$;

create or replace function lose_attempts(p_attempt_ids text[]) returns int language plpgsql as $$
declare
  v_ids text[];
  v_back bigint[];
  v_spent bigint[];
begin
  with lost as (
    update attempt set state = 'lost', ambiguity = 'ambiguous', counted = true, has_failed = true,
      settled_nano = reserved_nano, certainty = 'estimated', finished_at = clock_timestamp(),
      duration_ms = extract(epoch from clock_timestamp() - started_at) * 1000,
      error = jsonb_build_object('code', 'contact_lost', 'message', 'the process that made the call went away')
    where attempt_id = any (p_attempt_ids) and state in ('reserved', 'dispatched')
    returning *
  ), booked as (
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window)
    select attempt_id, 'settle', project_id, capability, settled_nano, 'estimated', budget_window
    from lost where reserved_nano > 0
  )
  select array_agg(attempt_id), array_agg(-reserved_nano - risk_nano), array_agg(reserved_nano)
    into v_ids, v_back, v_spent from lost;
  perform charge_budgets(m.ids, m.back, m.spent, '{}', clock_timestamp()) from (
    select array_agg(t.id) as ids, array_agg(t.back) as back, array_agg(t.spent) as spent
    from unnest(v_ids, v_back, v_spent) t (id, back, spent) where t.spent > 0) m where m.ids is not null;
  return coalesce(cardinality(v_ids), 0);
end $$;

create or replace function settle_ends(p_ends attempt_end[], p_outputs json[], p_has_steps boolean,
  out outcomes text[], out charged text[], out back bigint[], out spent bigint[]) language plpgsql as $$
declare
  v_ended text[];
  v_changed int;
begin
  with ending as (
    select e.*, a.state as was, a.reserved_nano, a.risk_nano, a.project_id, a.capability, a.budget_window,
      e.settled_nano - case when a.state = 'lost' then a.settled_nano else 0 end as cost
    from (select * from unnest(p_ends) e order by e.attempt_id) e
    cross join lateral (
      select a.* from attempt a where a.attempt_id = e.attempt_id and a.token = e.token
        and case a.state when 'reserved' then true when 'dispatched' then true
          when 'lost' then a.certainty = 'estimated' and e.certainty = 'exact' and a.reserved_nano > 0 end
      for update) a
  ), ended as (
    update attempt a set settled_nano = e.settled_nano, certainty = e.certainty,
      state = case when e.was = 'lost' then a.state else e.state end,
      ambiguity = case when e.was = 'lost' then a.ambiguity else e.ambiguity end,
      counted = case when e.was = 'lost' then a.counted else e.counted end,
      has_failed = a.has_failed or e.has_failed,
      duration_ms = case when e.was = 'lost' then a.duration_ms else e.duration_ms end,
      error = case when e.was = 'lost' then a.error else e.error end,
      finished_at = case when e.was = 'lost' then a.finished_at else clock_timestamp() end
    from ending e where a.attempt_id = e.attempt_id and a.attempt_id = any (array(select x.attempt_id from unnest(p_ends) x))
  ), booked as (
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window)
    select e.attempt_id,
      case when e.was = 'lost' then 'adjust' when e.state = 'released' then 'release' else 'settle' end,
      e.project_id, e.capability, e.cost, coalesce(e.certainty, 'exact'), e.budget_window
    from ending e where e.reserved_nano > 0
  )
  select array_agg(e.attempt_id) filter (where e.was <> 'lost'),
      array_agg(e.attempt_id) filter (where e.reserved_nano > 0),
      array_agg(case when e.was = 'lost' then 0 else -e.reserved_nano - e.risk_nano end) filter (where e.reserved_nano > 0),
      array_agg(e.cost) filter (where e.reserved_nano > 0), count(*)
    into v_ended, charged, back, spent, v_changed from ending e;

  if p_has_steps then
    with ending as (
      select e.*, e.unnest as output, a.number
      from rows from (unnest(p_ends), unnest(p_outputs)) e
      cross join lateral (select a.number from attempt a where a.attempt_id = e.attempt_id offset 0) a
      where e.attempt_id = any (v_ended)
    ), stepped as (
      update step s set state = e.step_state, output = case when e.step_state = 'succeeded' then e.output end,
          error = case when e.step_state = 'succeeded' then null else e.error end,
          finished_at = case when e.step_state = 'retrying' then null else clock_timestamp() end
        from ending e
        where s.run_id = e.run_id and s.step_id = e.step_id and s.item = e.item and s.state in ('running', 'retrying')
          and s.run_id = any (array(select x.run_id from unnest(p_ends) x))
          and s.step_id = any (array(select x.step_id from unnest(p_ends) x))
          and s.item = any (array(select x.item from unnest(p_ends) x))
      returning s.run_id, e.step_state, s.step_id, s.item, e.number, e.event_data
    )
    insert into event (run_id, type, step_id, item, attempt, data)
    select run_id, 'step.' || case step_state when 'unknown' then 'failed' else step_state end, step_id,
      nullif(item, 0), number, event_data from stepped;
  end if;
  if cardinality(v_ended) = cardinality(p_ends) then
    outcomes := array_fill('settled'::text, array[v_changed]);
    return;
  end if;
  outcomes := array(
    select case when (a.state, a.duration_ms, a.settled_nano) = (e.state, e.duration_ms, e.settled_nano)
      then 'settled' else 'superseded' end
    from unnest(p_ends) with ordinality e
    left join lateral (select a.* from attempt a where a.attempt_id = e.attempt_id and a.token = e.token offset 0) a on true
    order by e.ordinality);
end $$;

create or replace function claim_slots(p_claims claim_request[], p_now timestamptz, p_refusal jsonb, p_is_paid boolean,
  p_has_steps boolean, p_has_earlier boolean,
  out outcomes text[], out numbers int[], out counted int[], out outputs json[]) language plpgsql as $$
declare
  v_ended text[]; -- by the step, the whole of it or its run: answered, closed; else failed_before or null
  v_made int[];
  v_has_news boolean[]; -- instances have failed the key that the claim does not know of
  v_endpoints text[];
  v_held int;
  v_instances text[];
  v_instance text;
  i record;
  c claim_request;
  at int;
begin
  if p_has_steps then
    select array_agg(case when s.state = 'succeeded' then 'answered'
          when s.state in ('failed', 'unknown', 'skipped', 'cancelled') then 'closed'
          when x.item > 0 and (select w.finished_at from step w
            where w.run_id = x.run_id and w.step_id = x.step_id and w.item = 0) is not null then 'closed'
          when x.begins_step and s.run_id is not null then 'closed'
          when s.run_id is null and (select r.finished_at from run r where r.run_id = x.run_id) is not null
            then 'closed' end order by x.ordinality),
        array_agg(case s.state when 'succeeded' then s.output end order by x.ordinality)
      into v_ended, outputs
      from unnest(p_claims) with ordinality x
      left join lateral (
        select s.* from step s where s.run_id = x.run_id and s.step_id = x.step_id and s.item = x.item offset 0) s on true;
  end if;
  if p_has_earlier then
    select array_agg(e.made order by x.ordinality), array_agg(e.counted order by x.ordinality),
        array_agg(e.has_news order by x.ordinality)
      into v_made, counted, v_has_news
      from unnest(p_claims) with ordinality x
      left join lateral (select count(*)::int as made, (count(*) filter (where a.counted))::int as counted,
          bool_or(a.has_failed and a.instance_id <> all (x.known_failures)) as has_news
        from attempt a where a.key = x.key and not x.is_first) e on true;
    if true = any (v_has_news) then
      outputs := coalesce(outputs, array_fill(null::json, array[cardinality(p_claims)]));
      for n in 1 .. cardinality(p_claims) loop
        if v_has_news[n] and v_ended[n] is null then
          v_ended[n] := 'failed_before';
          outputs[n] := failures_of(p_claims[n].key);
        end if;
      end loop;
    end if;
  end if;

  if cardinality(p_claims) = 1 then
    v_instances := array[p_claims[1].instance_id];
  else
    v_instances := array(select distinct x.instance_id from unnest(p_claims) x order by 1);
  end if;
  foreach v_instance in array v_instances loop
    select x.endpoint, x.state, x.breaker_until, x.cost_type, x.rate_usd, x.max_concurrency, x.drained_by into i
      from instance x where x.instance_id = v_instance for no key update;
    continue when not found;
    select (select count(*) from attempt a where a.instance_id = v_instance and a.state in ('reserved', 'dispatched'))
      + (select coalesce(sum(l.slots), 0) from slot_lease l where l.instance_id = v_instance
        and l.expires_at > clock_timestamp()) into v_held;
    at := 0;
    foreach c in array p_claims loop
      at := at + 1;
      if c.instance_id <> v_instance then
        continue;
      elsif v_ended[at] is not null then
        outcomes[at] := v_ended[at];
      elsif p_refusal is not null and c.reserved_nano > 0 then
        outcomes[at] := 'over_budget';
        outputs[at] := p_refusal::json;
      elsif i.state not in ('up', 'suspect') or i.drained_by is not null or i.breaker_until > clock_timestamp()
          or i.cost_type <> c.cost_type or i.rate_usd <> c.rate_usd then
        outcomes[at] := 'gone';
      elsif v_held >= i.max_concurrency or (c.must_be_idle and v_held > 0) then
        outcomes[at] := 'full';
      else
        outcomes[at] := 'claimed';
        v_endpoints[at] := i.endpoint;
        v_held := v_held + 1;
        if i.breaker_until is not null then -- the one trial of this window
          i.breaker_until := clock_timestamp() + c.lease_ms * interval '1 millisecond';
          update instance x set breaker_until = i.breaker_until where x.instance_id = v_instance;
        end if;
      end if;
    end loop;
  end loop;

  with chosen as (
    insert into attempt_choice (attempt_id, decision, inputs)
    select x.attempt_id, x.decision, x.inputs from unnest(p_claims) with ordinality x
    where outcomes[x.ordinality] = 'claimed'
  )
  insert into attempt (attempt_id, project_id, key, number, run_id, step_id, item, capability, instance_id,
    endpoint, state, token, lease_until, cost_type, rate_usd, reserved_nano, started_at, scopes, budgets, budget_window,
    risk_nano)
  select x.attempt_id, x.project_id, x.key, coalesce(v_made[x.ordinality], 0) + 1, x.run_id, x.step_id, x.item,
    x.capability, x.instance_id, v_endpoints[x.ordinality], 'dispatched', x.token,
    clock_timestamp() + x.lease_ms * interval '1 millisecond', x.cost_type, x.rate_usd, x.reserved_nano,
    p_now, x.scopes, x.budgets, case when x.reserved_nano > 0
      then (select (p_now at time zone p.timezone)::date from project p where p.project_id = x.project_id) end,
    coalesce(x.risk_nano, 0)
  from unnest(p_claims) with ordinality x where outcomes[x.ordinality] = 'claimed';

  if p_is_paid then
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budgets, budget_window)
    select x.attempt_id, 'reserve', x.project_id, x.capability, x.reserved_nano, 'exact', x.budgets,
      (select (p_now at time zone p.timezone)::date from project p where p.project_id = x.project_id)
    from unnest(p_claims) with ordinality x where x.reserved_nano > 0 and outcomes[x.ordinality] = 'claimed';
  end if;
  for at in 1 .. cardinality(p_claims) loop
    outcomes[at] := coalesce(outcomes[at], v_ended[at], 'gone');
    numbers[at] := case outcomes[at] when 'claimed' then coalesce(v_made[at], 0) + 1 else 0 end;
    counted[at] := case outcomes[at] when 'claimed' then coalesce(counted[at], 0) else 0 end;
  end loop;
  if p_is_paid and p_refusal is null and 'claimed' <> any (outcomes) then
    perform release_budgets((select array_agg(p_claims[n]) from generate_subscripts(p_claims, 1) n
      where outcomes[n] <> 'claimed'), p_now);
  end if;
  if p_has_steps then
    perform begin_steps(p_claims, outcomes, numbers, v_endpoints);
  end if;
end $$;
`;

export const reserveDeclaredPrices = {
  name: '0015-reserve-declared-prices',
  isPiecewise: true,
  up: (db: Knex): Promise<void> => changeTables(db, [...tables, functions]),
};
