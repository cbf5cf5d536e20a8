-- schema 1

-- The one statement of every call, and its functions for claims: they lock money, then take slots for all claims at
-- once, or one by one.

-- Writes ends, then claims, with results in that order: the one statement of every call. A crash of the database may
-- undo a call that is not durable; such ends are those of free calls without a step, and a lost claim on a free
-- instance ends with its lease.
--
-- All locks are acquired in one order, within a kind by key, so that nothing deadlocks:
-- L1 keys of calls (advisory), L2 steps, L3 attempts and then responses kept under callers' keys, L4 budgets, L5
-- instances, L6 hosts.
--
-- Every batch has the same plan, whatever the statistics are: planning a settlement takes longer than executing it, and
-- a plan made for empty tables would read all of them. So every statement fixes its starting point. Rows are looked up
-- one by one, in a lateral subquery that the planner does not flatten (`for update`, `offset 0`), and updated rows are
-- also named by their whole key (`= any`). Starting a statement costs more than its work, so a plain call, free and
-- without a step, starts as few as possible.
create or replace function settle_and_claim(p_ends json, p_outputs json[], p_claims json, p_durable boolean)
returns table (outcome text, number int, counted int, output json) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  v_now timestamptz;
  v_ends attempt_end[] := '{}';
  v_ends_steps boolean := false;
  v_keeps boolean := false;
  v_has_contents boolean := false;
  v_claims claim_request[] := '{}';
  v_is_paid boolean := false;
  v_has_steps boolean := false;
  v_has_earlier boolean := false;
  v_draws boolean := false;
  v_has_hosts boolean;
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
    select array_agg(e), bool_or(e.step_id is not null), bool_or(e.keeps is not null), bool_or(e.content is not null)
      into v_ends, v_ends_steps, v_keeps, v_has_contents
      from json_populate_recordset(null::attempt_end, p_ends) e;
    if not p_durable and cardinality(v_ends) > 1 then -- L3; they are answered alike in any order
      v_ends := array(select e from unnest(v_ends) e order by e.attempt_id);
    end if;
  end if;
  if p_claims is not null then
    select array_agg(c), bool_or(c.reserved_nano > 0), bool_or(c.run_id is not null), bool_or(not c.is_first and not c.begins_step),
        bool_or(c.reserved_nano > 0 and (select p.has_budgets from project p where p.project_id = c.project_id)),
        bool_or(c.has_host)
      into v_claims, v_is_paid, v_has_steps, v_has_earlier, v_draws, v_has_hosts
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
          has_failed = e.has_failed, settled_nano = 0, certainty = e.certainty, duration_ms = e.duration_ms, error = e.error, finished_at = clock_timestamp(),
          model = e.model, tokens = e.tokens
        from unnest(v_ends) e
        where a.attempt_id = e.attempt_id and a.token = e.token and a.finished_at is null
          and a.step_id is null and a.reserved_nano = 0
          -- so that every plan comes by the attempts in the order of their ids, and locks them in it
          and a.attempt_id between v_ends[1].attempt_id and v_ends[cardinality(v_ends)].attempt_id;
    end if;
    if v_has_contents then
      perform keep_contents(v_ends);
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
    return query select * from claim_one_by_one(v_claims, v_now, v_refusal is null, v_has_hosts);
  else
    return query select unnest(s.outcomes), unnest(s.numbers), unnest(s.counted), unnest(s.outputs)
      from claim_slots(v_claims, v_now, v_refusal, v_is_paid, v_has_steps, v_has_earlier, v_has_hosts) s;
  end if;
end $$;

-- Locks the budgets of claims together with those of the open attempts that they replace, which may be of another day.
-- It opens missing budgets, then locks all of them, in the order of their key (L4).
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

-- Claims slots on instances, for claims whose keys, steps and money are locked; null p_refusal = the money of all of
-- them is reserved. A claim is answered or closed if its step, the step as a whole or its run has ended, or if it would
-- begin a step that has begun. A claim that does not know which instances have failed its key gets the list (R6). A
-- half-open breaker lets one call through. A call also takes slots of the host of its instance; null p_has_hosts = no
-- claim is for an instance that has one. It returns results in the given order, and releases the money of refused
-- claims. It locks the instances, by id (L5), then their hosts (L6).
create or replace function claim_slots(p_claims claim_request[], p_now timestamptz, p_refusal jsonb, p_is_paid boolean,
  p_has_steps boolean, p_has_earlier boolean, p_has_hosts boolean,
  out outcomes text[], out numbers int[], out counted int[], out outputs json[]) language plpgsql as $$
declare
  v_ended text[]; -- by the step, the whole of it or its run: answered, closed; else failed_before or null
  v_made int[];
  v_has_news boolean[]; -- instances have failed the key that the claim does not know of
  v_endpoints text[];
  v_held int;
  v_instances text[];
  v_instance text;
  v_hosts text[];
  v_slots int[];
  v_rooms int[];
  v_host int; -- the position of the host of an instance
  v_takes int;
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
  if p_has_hosts then
    select h.hosts, h.slots, h.rooms into v_hosts, v_slots, v_rooms from lock_hosts(v_instances) h;
  end if;
  foreach v_instance in array v_instances loop
    select x.endpoint, x.state, x.breaker_until, x.cost_type, x.rate_usd, x.max_concurrency, x.drained_by,
        x.owner_project, x.shared_with, x.host, x.takes into i
      from instance x where x.instance_id = v_instance for no key update;
    continue when not found;
    if p_has_hosts then
      v_host := array_position(v_hosts, i.owner_project || ' ' || i.host);
      v_takes := least(i.takes, v_slots[v_host]);
    end if;
    select (select count(*) from attempt a where a.instance_id = v_instance and a.state in ('reserved', 'dispatched')
        and a.later ->> 'slot' is distinct from 'freed')
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
          or i.cost_type <> c.cost_type or i.rate_usd <> c.rate_usd
          or (i.host is not null) <> coalesce(c.has_host, false)
          or i.owner_project <> c.project_id and not serves(i.owner_project, i.shared_with, c.project_id) then
        outcomes[at] := 'gone';
      elsif v_held >= i.max_concurrency or (c.must_be_idle and v_held > 0) or v_takes > coalesce(v_rooms[v_host], 0) then
        outcomes[at] := 'full';
      else
        outcomes[at] := 'claimed';
        v_endpoints[at] := i.endpoint;
        v_held := v_held + 1;
        if i.host is not null then
          v_rooms[v_host] := v_rooms[v_host] - v_takes;
        end if;
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
    risk_nano, expected_nano, variance)
  select x.attempt_id, x.project_id, x.key, coalesce(v_made[x.ordinality], 0) + 1, x.run_id, x.step_id, x.item,
    x.capability, x.instance_id, v_endpoints[x.ordinality], 'dispatched', x.token,
    clock_timestamp() + x.lease_ms * interval '1 millisecond', x.cost_type, x.rate_usd, x.reserved_nano,
    p_now, case when x.run_id is null then x.scopes else coalesce(x.scopes, run_scopes(x.run_id)) end, x.budgets,
    case when x.reserved_nano > 0
      then (select (p_now at time zone p.timezone)::date from project p where p.project_id = x.project_id) end,
    coalesce(x.risk_nano, 0), x.expected_nano, coalesce(x.variance, 0)
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

-- Claims one by one, with keys, steps and money locked: if there is not enough money for all, and for claims of one
-- key, where each supersedes the one before, except one that would begin a step that has begun. It locks all instances
-- first, by id (L5), then their hosts (L6).
create or replace function claim_one_by_one(p_claims claim_request[], p_now timestamptz, p_is_reserved boolean,
  p_has_hosts boolean)
returns table (outcome text, number int, counted int, output json) language plpgsql as $$
declare
  c claim_request;
begin
  perform 1 from instance i where i.instance_id in (select x.instance_id from unnest(p_claims) x)
    order by i.instance_id for no key update;
  if p_has_hosts then
    perform lock_hosts(array(select x.instance_id from unnest(p_claims) x));
  end if;
  foreach c in array p_claims loop
    if not c.is_first and not c.begins_step then
      perform lose_attempts(array(select a.attempt_id from attempt a
        where a.key = c.key and a.state in ('reserved', 'dispatched')));
    end if;
    return query select s.outcomes[1], s.numbers[1], s.counted[1], s.outputs[1] from claim_slots(array[c], p_now,
      case when c.reserved_nano > 0 and not p_is_reserved then charge_budgets('{}', '{}', '{}', array[c], p_now) end,
      c.reserved_nano > 0, c.run_id is not null, not c.is_first, c.has_host) s;
  end loop;
end $$;
