/**
 * Budgets for a part of a project's calls: by key, label, capability or user, by day or month. An attempt and its
 * reservation in the ledger name those that hold it.
 */
import type { Knex } from 'knex';
import { addIndex, changeTables } from './gentle-steps.ts';

const tables = [
  'alter table project add column if not exists has_budgets boolean not null default false',
  `create table if not exists scoped_budget (
    project_id text not null references project,
    scope text collate "C" not null,
    period text not null check (period in ('day', 'month')),
    limit_nano bigint not null check (limit_nano > 0),
    soft numeric not null check (soft > 0 and soft < 1),
    primary key (project_id, scope, period)
  )`,
  `alter table api_key add column if not exists requests_per_minute int check (requests_per_minute > 0),
    add column if not exists tokens_per_minute int check (tokens_per_minute > 0)`,
  'alter table run add column if not exists key_id text',
  'alter table attempt add column if not exists scopes text[], add column if not exists budgets text[]',
  'alter table budget add column if not exists soft numeric not null default 0.8',
  'alter table ledger_entry add column if not exists budgets text[]',
  `create index if not exists ledger_entry_drawn on only ledger_entry (budget_window) where budgets is not null`,
  `do $$ begin
    if not exists (select from pg_attribute where attrelid = 'claim_request'::regclass and attname = 'budgets') then
      alter type claim_request add attribute scopes text[], add attribute budgets text[];
    end if;
  end $$`,
];

const functions = `
create or replace function run_scopes(p_run text) returns text[] language sql stable as $$
  select array['key:' || t.key_id] || array(select 'label:' || key || '=' || value from jsonb_each_text(t.labels))
  from run r join run t on t.run_id = coalesce(r.ancestors[1], r.run_id) where r.run_id = p_run
$$;

create or replace function all_budget_scopes(p_project text, p_capability text, p_run text, p_day date, p_utc_day date,
  p_budgets text[])
returns table (scope text, window_start date) language sql stable as $$
  select s.scope, s.window_start from budget_scopes(p_project, p_capability, p_run, p_day, p_utc_day) s
  union all
  select 'budget:' || p_project || ':' || b.name,
    case when b.name like 'month:%' then date_trunc('month', p_day::timestamp)::date else p_day end
  from unnest(p_budgets) b (name)
$$;

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

create or replace function budget_demand(p_claims claim_request[], p_now timestamptz)
returns table (scope text, window_start date, nano bigint) language sql stable as $$
  select s.scope, s.window_start, sum(c.reserved_nano)::bigint
  from unnest(p_claims) c join project p using (project_id)
  cross join lateral all_budget_scopes(c.project_id, c.capability, c.run_id,
    (p_now at time zone p.timezone)::date, (p_now at time zone 'UTC')::date, c.budgets) s
  where c.reserved_nano > 0 group by 1, 2
$$;

create or replace function name_of_budget(p_scope text) returns text language sql immutable as $$
  select regexp_replace(p_scope, '^budget:[^:]*:[^:]*:', '')
$$;

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

create or replace function apply_budgets(p_scopes text[], p_windows date[], p_moved bigint[], p_spent bigint[],
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
  select jsonb_build_object('scope', split_part(r.scope, ':', case when r.scope like 'budget:%' then 4 else 1 end),
      'run_id', case when r.scope like 'run:%' then substr(r.scope, 5) end, 'limit_nano', r.limit_nano::text,
      'spent_nano', r.spent::text, 'reserved_nano', r.reserved::text,
      'budget', case when r.scope like 'budget:%' then name_of_budget(r.scope) end,
      'period', case when r.scope like 'budget:%' then split_part(r.scope, ':', 3) end,
      'resets_at', case when r.window_start <> '-infinity' then day_start(case when r.scope like 'budget:%'
          and split_part(r.scope, ':', 3) = 'month' then (r.window_start + interval '1 month')::date
          else r.window_start + 1 end, coalesce(
        (select timezone from project where project_id = split_part(r.scope, ':', 2) collate "default"), 'UTC')) end)
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
        select s.scope, s.window_start, m.back as moved, m.spent, 0::bigint as wanted
        from unnest(p_attempt_ids, p_back, p_spent) m (attempt_id, back, spent)
        cross join lateral (select * from attempt a where a.attempt_id = m.attempt_id offset 0) a
        cross join lateral all_budget_scopes(a.project_id, a.capability, a.run_id,
          a.budget_window, (a.started_at at time zone 'UTC')::date, a.budgets) s
        union all
        select s.scope, s.window_start, 0, 0, x.reserved_nano
        from unnest(p_claims) x join project p using (project_id)
        cross join lateral all_budget_scopes(x.project_id, x.capability, x.run_id,
          (p_now at time zone p.timezone)::date, (p_now at time zone 'UTC')::date, x.budgets) s
        where x.reserved_nano > 0
      ) c group by 1, 2 order by c.scope collate "C", c.window_start) t;
  if v_scopes is null then
    return null;
  end if;
  return apply_budgets(v_scopes, v_windows, v_moved, v_spent, v_wanted, coalesce(cardinality(p_claims), 0) = 1);
end $$;

create or replace function lock_budgets(p_claims claim_request[], p_attempt_ids text[], p_now timestamptz)
returns void language plpgsql as $$
declare
  d record;
begin
  for d in select scope, window_start from budget_demand(p_claims, p_now) order by scope collate "C", window_start loop
    perform open_budget(d.scope, d.window_start);
  end loop;
  perform 1 from (
      select * from (
        select scope, window_start from budget_demand(p_claims, p_now)
        union select s.scope, s.window_start from attempt a
        cross join lateral all_budget_scopes(a.project_id, a.capability, a.run_id,
          a.budget_window, (a.started_at at time zone 'UTC')::date, a.budgets) s
        where a.attempt_id = any (p_attempt_ids)) u
      order by u.scope collate "C", u.window_start) m
    cross join lateral (
      select 1 from budget b where b.scope = m.scope and b.window_start = m.window_start for update) b;
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
    select x.endpoint, x.state, x.breaker_until, x.cost_type, x.rate_usd, x.max_concurrency into i
      from instance x where x.instance_id = v_instance for no key update;
    continue when not found;
    select count(*) into v_held from attempt a where a.instance_id = v_instance
      and a.state in ('reserved', 'dispatched');
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
      elsif i.state not in ('up', 'suspect') or i.breaker_until > clock_timestamp()
          or i.cost_type <> c.cost_type or i.rate_usd <> c.rate_usd then
        outcomes[at] := 'gone';
      elsif v_held >= i.max_concurrency or (c.must_be_idle and v_held > 0) or (c.is_prefetch and is_tight(c, p_now)) then
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
    endpoint, state, token, lease_until, cost_type, rate_usd, reserved_nano, started_at, scopes, budgets, budget_window)
  select x.attempt_id, x.project_id, x.key, coalesce(v_made[x.ordinality], 0) + 1, x.run_id, x.step_id, x.item,
    x.capability, x.instance_id, v_endpoints[x.ordinality], 'dispatched', x.token,
    clock_timestamp() + x.lease_ms * interval '1 millisecond', x.cost_type, x.rate_usd, x.reserved_nano,
    p_now, x.scopes, x.budgets, case when x.reserved_nano > 0
      then (select (p_now at time zone p.timezone)::date from project p where p.project_id = x.project_id) end
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

create or replace function settle_and_claim(p_ends json, p_outputs json[], p_claims json, p_durable boolean)
returns table (outcome text, number int, counted int, output json) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  v_now timestamptz;
  v_ends attempt_end[] := '{}';
  v_ends_steps boolean := false;
  v_keeps boolean := false;
  v_claims claim_request[] := '{}';
  v_is_paid boolean := false;
  v_has_steps boolean := false;
  v_has_earlier boolean := false;
  v_draws boolean := false;
  v_charged text[];
  v_open text[];
  v_outcomes text[];
  v_paid text[];
  v_back bigint[];
  v_spent bigint[];
  v_refusal jsonb;
begin
  if not p_durable then
    perform set_config('synchronous_commit', 'off', true);
  end if;
  if p_ends is not null then
    select array_agg(e), bool_or(e.step_id is not null), bool_or(e.keeps is not null) into v_ends, v_ends_steps, v_keeps
      from json_populate_recordset(null::attempt_end, p_ends) e;
    if not p_durable and cardinality(v_ends) > 1 then -- L3; they are answered alike in any order
      v_ends := array(select e from unnest(v_ends) e order by e.attempt_id);
    end if;
  end if;
  if p_claims is not null then
    select array_agg(c), bool_or(c.reserved_nano > 0), bool_or(c.run_id is not null), bool_or(not c.is_first and not c.begins_step),
        bool_or(c.reserved_nano > 0 and (select p.has_budgets from project p where p.project_id = c.project_id))
      into v_claims, v_is_paid, v_has_steps, v_has_earlier, v_draws
      from json_populate_recordset(null::claim_request, p_claims) c;
    if v_draws then
      v_claims := draw_budgets(v_claims);
    end if;
  end if;
  if (v_is_paid or v_keeps) and not p_durable then
    raise exception 'a claim with money, and an answer that is kept, must be durable';
  end if;

  if v_has_steps or v_has_earlier then -- L1
    perform pg_advisory_xact_lock(k) from (
      select distinct hashtextextended(x.key, 0) as k from unnest(v_claims) x
      where not x.is_first or x.run_id is not null order by 1) keys;
  end if;
  if v_has_steps or v_ends_steps then -- L2
    perform 1 from (
      select x.run_id, x.step_id, x.item from unnest(v_claims) x
      union select e.run_id, e.step_id, e.item from unnest(v_ends) e order by 1, 2, 3) k
    cross join lateral (
      select 1 from step s where s.run_id = k.run_id and s.step_id = k.step_id and s.item = k.item for update) s;
  end if;
  if v_has_earlier then -- L3; else the ends are locked as they are written
    with open as (
      select a.attempt_id, a.reserved_nano, k.is_earlier from (
        select m.attempt_id, bool_and(m.is_earlier) as is_earlier from (
          select e.attempt_id, false as is_earlier from unnest(v_ends) e
          union all select o.attempt_id, true from unnest(v_claims) x cross join lateral (
            select a.attempt_id from attempt a where a.key = x.key and not x.is_first and not x.begins_step
              and a.state in ('reserved', 'dispatched') offset 0) o) m
        group by 1 order by 1) k
      cross join lateral (
        select a.attempt_id, a.reserved_nano from attempt a where a.attempt_id = k.attempt_id for update) a
    ) select array_agg(o.attempt_id) filter (where o.reserved_nano > 0),
        array_agg(o.attempt_id) filter (where o.is_earlier) into v_charged, v_open from open o;
  end if;
  v_now := clock_timestamp();
  if v_has_earlier and v_charged is not null then -- L4
    perform lock_budgets(v_claims, v_charged, v_now);
  end if;

  if cardinality(v_ends) > 0 then
    if p_durable then
      select s.outcomes, s.charged, s.back, s.spent into v_outcomes, v_paid, v_back, v_spent
        from settle_ends(v_ends, p_outputs, v_ends_steps) s;
      if v_keeps then
        perform keep_answers(v_ends, p_outputs);
      end if;
    else
      update attempt a set state = e.state, ambiguity = e.ambiguity, counted = e.counted,
          has_failed = e.has_failed, settled_nano = 0, certainty = e.certainty, duration_ms = e.duration_ms, error = e.error, finished_at = clock_timestamp()
        from unnest(v_ends) e
        where a.attempt_id = e.attempt_id and a.token = e.token and a.finished_at is null
          and a.step_id is null and a.reserved_nano = 0
          -- so that every plan comes by the attempts in the order of their ids, and locks them in it
          and a.attempt_id between v_ends[1].attempt_id and v_ends[cardinality(v_ends)].attempt_id;
    end if;
    number := 0;
    counted := 0;
    for n in 1 .. cardinality(v_ends) loop
      outcome := case when p_durable then v_outcomes[n] else 'settled' end;
      return next;
    end loop;
  end if;
  if v_open is not null then -- the claims replace them, except where the step has ended
    perform lose_attempts(array(select a.attempt_id from unnest(v_open) o (attempt_id) join attempt a using (attempt_id)
      left join step s on s.run_id = a.run_id and s.step_id = a.step_id and s.item = a.item
      where coalesce(s.state not in ('succeeded', 'failed', 'unknown', 'skipped', 'cancelled'), true)));
  end if;
  if v_paid is not null or v_is_paid then
    v_refusal := charge_budgets(coalesce(v_paid, '{}'), coalesce(v_back, '{}'), coalesce(v_spent, '{}'), v_claims, v_now);
  end if;

  if cardinality(v_claims) = 0 then
    return;
  elsif cardinality(v_claims) > 1 and (v_refusal is not null or v_has_earlier and exists (
      select 1 from unnest(v_claims) x where not x.is_first group by x.key having count(*) > 1)) then
    return query select * from claim_one_by_one(v_claims, v_now, v_refusal is null);
  else
    return query select unnest(s.outcomes), unnest(s.numbers), unnest(s.counted), unnest(s.outputs)
      from claim_slots(v_claims, v_now, v_refusal, v_is_paid, v_has_steps, v_has_earlier) s;
  end if;
end $$;

create or replace function erase_attempts(p_project text, p_pseudonym text, p_ids text[]) returns int language plpgsql as $$
declare
  v_scopes text[];
  v_windows date[];
  v_spent bigint[];
  v_deleted int;
begin
  perform 1 from attempt where attempt_id = any (p_ids) and project_id = p_project order by attempt_id for update; -- L3
  with moved as (
    update attempt set project_id = p_pseudonym, key = 'erased.' || attempt_id, run_id = null, step_id = null,
      item = null, instance_id = 'erased', endpoint = 'erased', error = null, cached_from = null, scopes = null,
      budgets = null
    where attempt_id = any (p_ids) and project_id = p_project and reserved_nano > 0 and settled_nano is not null
      and budget_window >= (now() at time zone 'UTC')::date - 4
    returning capability, budget_window, (started_at at time zone 'UTC')::date as utc_day, settled_nano
  )
  select array_agg(t.scope), array_agg(t.window_start), array_agg(t.spent) into v_scopes, v_windows, v_spent from (
    select s.scope, s.window_start, sum(x.sign * m.settled_nano)::bigint as spent
    from moved m cross join (values (p_project, -1), (p_pseudonym, 1)) x (project, sign)
    cross join lateral budget_scopes(x.project, m.capability, null, m.budget_window, m.utc_day) s
    where s.scope <> 'global' group by 1, 2 order by s.scope collate "C", s.window_start) t;
  if v_scopes is not null then
    perform move_budgets(v_scopes, v_windows, array_fill(0::bigint, array[cardinality(v_scopes)]), v_spent);
  end if;
  delete from attempt_choice where attempt_id = any (p_ids);
  delete from attempt where attempt_id = any (p_ids) and project_id = p_project;
  get diagnostics v_deleted = row_count;
  return v_deleted;
end $$;

create or replace function erase_project(p_table text, p_project text, p_pseudonym text, p_keys text[], p_after bigint, p_most int)
returns bigint language plpgsql as $$
declare
  v_done bigint;
begin
  perform set_config('capstan.erases', p_table, true);
  if p_table = 'ledger_entry' then
    update ledger_entry l set project_id = p_pseudonym, budgets = null from (
      select entry_id, budget_window from ledger_entry where project_id = p_project limit p_most) o
    where l.entry_id = o.entry_id and l.budget_window = o.budget_window;
    get diagnostics v_done = row_count;
  elsif p_table = 'skill_version' then
    delete from skill_version where (skill_id, version) in (
      select v.skill_id, v.version from skill s join skill_version v using (skill_id)
      where s.project_id = p_project limit p_most);
    get diagnostics v_done = row_count;
  else
    select max(entry) into v_done from (
      select entry from audit where entry > p_after order by entry limit p_most) page;
    update audit a set project_id = case when a.project_id = p_project then p_pseudonym else a.project_id end,
      actor = case when a.actor = any (p_keys) then 'erased' else a.actor end,
      subject = case when a.project_id = p_project or a.subject = p_project or a.subject = any (p_keys)
        then 'erased' else a.subject end,
      data = case when a.project_id = p_project then '{}'
        else replace(a.data::text, p_project, p_pseudonym)::jsonb end
    where a.entry > p_after and a.entry <= v_done and (a.project_id = p_project or a.subject = p_project
      or a.actor = any (p_keys) or a.subject = any (p_keys) or strpos(a.data::text, p_project) > 0);
  end if;
  perform set_config('capstan.erases', '', true);
  return nullif(v_done, 0);
end $$;

create or replace function erase_user(p_project text, p_user text, p_pseudonym text) returns int language plpgsql as $$
declare
  v_ids text[];
  v_days text[] := array['day:' || p_user, 'month:' || p_user];
begin
  select array_agg(attempt_id) into v_ids from (
    select attempt_id from attempt where project_id = p_project and scopes @> array[p_user]
    order by attempt_id for update) a;
  update attempt set scopes = array_replace(scopes, p_user, p_pseudonym),
      budgets = array_replace(array_replace(budgets, 'day:' || p_user, 'day:' || p_pseudonym),
        'month:' || p_user, 'month:' || p_pseudonym)
    where attempt_id = any (v_ids);
  perform 1 from (
    select scope, window_start from budget where scope in ('budget:' || p_project || ':day:' || p_user,
      'budget:' || p_project || ':month:' || p_user) order by scope collate "C", window_start for update) b;
  update budget set scope = 'budget:' || p_project || ':' || split_part(scope, ':', 3) || ':' || p_pseudonym
    where scope in ('budget:' || p_project || ':day:' || p_user, 'budget:' || p_project || ':month:' || p_user);
  perform set_config('capstan.erases', 'ledger_entry', true);
  update ledger_entry set budgets = array_replace(array_replace(budgets, 'day:' || p_user, 'day:' || p_pseudonym),
      'month:' || p_user, 'month:' || p_pseudonym)
    where project_id = p_project and budgets && v_days;
  perform set_config('capstan.erases', 'audit', true);
  update audit set subject = p_pseudonym, data = case when jsonb_exists(data, 'scope')
      then jsonb_set(data, '{scope}', to_jsonb(p_pseudonym)) else data end
    where project_id = p_project and subject = p_user;
  perform set_config('capstan.erases', '', true);
  delete from webhook_delivery d using webhook w where w.webhook_id = d.webhook_id and w.project_id = p_project
    and d.event = 'budget.reached' and d.payload #>> '{data,scope}' = p_user;
  return coalesce(cardinality(v_ids), 0);
end $$;
`;

/** The partitions get their indexes beside writers; then the index of the whole table is valid. */
async function indexParts(db: Knex): Promise<void> {
  const { rows } = await db.raw<{ rows: { part: string }[] }>(
    `select c.relname as part from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'ledger_entry'::regclass order by 1`,
  );
  for (const { part } of rows) {
    const name = `${part}_budget_window_idx`;
    await addIndex(db, { name, on: `on ${part} (budget_window) where budgets is not null` });
    await changeTables(db, [`alter index ledger_entry_drawn attach partition ${name}`]);
  }
}

export const scopeBudgets = {
  name: '0005-scope-budgets',
  isPiecewise: true,
  up: async (db: Knex): Promise<void> => {
    await changeTables(db, [...tables, functions]);
    await indexParts(db);
  },
};
