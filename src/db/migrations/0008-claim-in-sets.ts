/**
 * The same turns by fewer and smaller statements, since starting one takes longer than its work: claims are judged in
 * memory and inserted together, budgets are locked, judged and moved at once, and texts are kept as they were sent,
 * because taking each decision apart took longer than the claim. The order of locks is that of migration 0005.
 */
import type { Knex } from 'knex';

/** Decisions are read as a whole, never searched. */
const keepTexts = `
alter table attempt alter column decision type json, alter column inputs type json;
alter type claim_request alter attribute decision set data type json, alter attribute inputs set data type json;
alter type attempt_end add attribute is_step boolean;
alter type claim_request add attribute is_ahead boolean;
drop function take_turn, claim_all, claim_locked, settle_all;
`;

/**
 * Ends of attempts with their outputs, in the order given, when their steps are locked; with each the end of its step.
 * superseded = a later attempt has taken over; then only money is corrected. An end that is told twice is told once.
 * The budgets are left to the caller: which attempts are charged, what they give back and cost.
 */
const settleAll = `
create function settle_all(p_ends attempt_end[], p_outputs json[], p_has_steps boolean,
  out outcomes text[], out charged text[], out back bigint[], out spent bigint[]) language plpgsql as $$
declare
  v_ended text[];
  v_changed int;
begin
  with ending as (
    select e.*, a.state as was, a.reserved_nano, a.project_id, a.capability, a.budget_window,
      e.settled_nano - case when a.state = 'lost' then a.settled_nano else 0 end as cost
    from unnest(p_ends) e join attempt a on a.attempt_id = e.attempt_id and a.token = e.token
    where case a.state when 'reserved' then true when 'dispatched' then true
      when 'lost' then a.certainty = 'estimated' and e.certainty = 'exact' and a.reserved_nano > 0 end
    order by e.attempt_id for update of a
  ), ended as (
    update attempt a set settled_nano = e.settled_nano, certainty = e.certainty,
      state = case when e.was = 'lost' then a.state else e.state end,
      ambiguity = case when e.was = 'lost' then a.ambiguity else e.ambiguity end,
      counted = case when e.was = 'lost' then a.counted else e.counted end,
      duration_ms = case when e.was = 'lost' then a.duration_ms else e.duration_ms end,
      error = case when e.was = 'lost' then a.error else e.error end,
      finished_at = case when e.was = 'lost' then a.finished_at else clock_timestamp() end
    from ending e where a.attempt_id = e.attempt_id
  ), booked as (
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window)
    select e.attempt_id,
      case when e.was = 'lost' then 'adjust' when e.state = 'released' then 'release' else 'settle' end,
      e.project_id, e.capability, e.cost, coalesce(e.certainty, 'exact'), e.budget_window
    from ending e where e.reserved_nano > 0
  )
  select array_agg(e.attempt_id) filter (where e.was <> 'lost'),
      array_agg(e.attempt_id) filter (where e.reserved_nano > 0),
      array_agg(case when e.was = 'lost' then 0 else -e.reserved_nano end) filter (where e.reserved_nano > 0),
      array_agg(e.cost) filter (where e.reserved_nano > 0), count(*)
    into v_ended, charged, back, spent, v_changed from ending e;

  if p_has_steps then
    with stepped as (
      update step s set state = e.step_state, output = case when e.step_state = 'succeeded' then o.output end,
          error = case when e.step_state = 'succeeded' then null else e.error end,
          finished_at = case when e.step_state = 'retrying' then null else clock_timestamp() end
        from unnest(p_ends) with ordinality e
        join unnest(p_outputs) with ordinality o (output, ordinality) using (ordinality)
        join attempt a on a.attempt_id = e.attempt_id
        where a.attempt_id = any (v_ended) and s.run_id = a.run_id and s.step_id = a.step_id and s.item = a.item
          and s.state in ('running', 'retrying')
      returning a.run_id, e.step_state, a.step_id, a.number, e.event_data
    )
    insert into event (run_id, type, step_id, attempt, data)
    select run_id, 'step.' || case step_state when 'unknown' then 'failed' else step_state end, step_id, number,
      event_data from stepped;
  end if;
  if cardinality(v_ended) = cardinality(p_ends) then
    outcomes := array_fill('settled'::text, array[v_changed]);
    return;
  end if;
  outcomes := array(
    select case when (a.state, a.duration_ms, a.settled_nano) = (e.state, e.duration_ms, e.settled_nano)
      then 'settled' else 'superseded' end
    from unnest(p_ends) with ordinality e
    left join attempt a on a.attempt_id = e.attempt_id and a.token = e.token
    order by e.ordinality);
end $$;
`;

/**
 * Claims whose keys, steps and money are locked; instances are locked here, by id. Null p_refusal = the money of all of
 * them is reserved. A half-open breaker lets one call through. Answers in the order given; money of those that came to
 * nothing goes back.
 */
const claimSet = `
create function claim_set(p_claims claim_request[], p_now timestamptz, p_refusal jsonb, p_is_paid boolean,
  p_has_steps boolean, p_has_earlier boolean,
  out outcomes text[], out numbers int[], out counted int[], out outputs json[]) language plpgsql as $$
declare
  v_ended text[]; -- by the step: answered, closed or null
  v_made int[];
  v_endpoints text[];
  v_held int;
  i instance;
  c claim_request;
  at int;
begin
  if p_has_steps then
    select array_agg(case when s.state = 'succeeded' then 'answered'
          when s.state in ('failed', 'unknown', 'skipped', 'cancelled') then 'closed' end order by x.ordinality),
        array_agg(case s.state when 'succeeded' then s.output end order by x.ordinality)
      into v_ended, outputs
      from unnest(p_claims) with ordinality x
      left join step s on s.run_id = x.run_id and s.step_id = x.step_id and s.item = x.item;
  end if;
  if p_has_earlier then
    select array_agg(e.made order by x.ordinality), array_agg(e.counted order by x.ordinality)
      into v_made, counted
      from unnest(p_claims) with ordinality x
      left join lateral (select count(*)::int as made, (count(*) filter (where a.counted))::int as counted
        from attempt a where a.key = x.key and not x.is_first) e on true;
  end if;

  for i in select * from instance where instance_id in (select x.instance_id from unnest(p_claims) x)
      order by instance_id for no key update loop
    select count(*) into v_held from attempt a where a.instance_id = i.instance_id
      and a.state in ('reserved', 'dispatched') and a.lease_until > clock_timestamp();
    at := 0;
    foreach c in array p_claims loop
      at := at + 1;
      if c.instance_id <> i.instance_id then
        continue;
      elsif v_ended[at] is not null then
        outcomes[at] := v_ended[at];
      elsif p_refusal is not null and c.reserved_nano > 0 then
        outcomes[at] := 'over_budget';
        outputs[at] := p_refusal::json;
      elsif i.state not in ('up', 'suspect') or i.breaker_until > clock_timestamp()
          or i.cost_type <> c.cost_type or i.rate_usd <> c.rate_usd then
        outcomes[at] := 'gone';
      elsif v_held >= i.max_concurrency or (c.must_be_idle and v_held > 0) or (c.is_ahead and is_tight(c, p_now)) then
        outcomes[at] := 'full';
      else
        outcomes[at] := 'claimed';
        v_endpoints[at] := i.endpoint;
        v_held := v_held + 1;
        if i.breaker_until is not null then -- the one trial of this window
          i.breaker_until := clock_timestamp() + c.lease_ms * interval '1 millisecond';
          update instance x set breaker_until = i.breaker_until where x.instance_id = i.instance_id;
        end if;
      end if;
    end loop;
  end loop;

  insert into attempt (attempt_id, project_id, key, number, run_id, step_id, item, capability, instance_id,
    endpoint, state, token, lease_until, cost_type, rate_usd, reserved_nano, decision, inputs, started_at,
    budget_window)
  select x.attempt_id, x.project_id, x.key, coalesce(v_made[x.ordinality], 0) + 1, x.run_id, x.step_id, x.item,
    x.capability, x.instance_id, v_endpoints[x.ordinality], 'dispatched', x.token,
    clock_timestamp() + x.lease_ms * interval '1 millisecond', x.cost_type, x.rate_usd, x.reserved_nano, x.decision,
    x.inputs, p_now, case when x.reserved_nano > 0
      then (select (p_now at time zone p.timezone)::date from project p where p.project_id = x.project_id) end
  from unnest(p_claims) with ordinality x where outcomes[x.ordinality] = 'claimed';

  if p_is_paid then
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window)
    select x.attempt_id, 'reserve', x.project_id, x.capability, x.reserved_nano, 'exact',
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
    perform begin_steps(p_claims, outcomes);
  end if;
end $$;
`;

/** The steps of claims that were made, and the lines of their runs' logs. */
const beginSteps = `
create function begin_steps(p_claims claim_request[], p_outcomes text[]) returns void language plpgsql as $$
begin
  with claimed as (
    select c.*, s.run_id is null as is_new from unnest(p_claims) with ordinality c
    left join step s on s.run_id = c.run_id and s.step_id = c.step_id and s.item = c.item
    where c.run_id is not null and p_outcomes[c.ordinality] = 'claimed'
  ), begun as (
    insert into step (run_id, step_id, item, revision, state, started_at)
    select c.run_id, c.step_id, c.item, c.revision, 'running', clock_timestamp() from claimed c where c.is_new
  ), resumed as (
    update step s set state = 'running', revision = c.revision, started_at = coalesce(s.started_at, clock_timestamp())
    from claimed c
    where not c.is_new and s.run_id = c.run_id and s.step_id = c.step_id and s.item = c.item
  )
  insert into event (run_id, type, step_id, attempt, data)
  select c.run_id, 'step.' || told.what, c.step_id,
    case told.what when 'routed' then a.number end,
    case told.what when 'routed' then jsonb_build_object('attempt_id', a.attempt_id, 'endpoint', a.endpoint,
      'reason', c.decision -> 'reason') else '{}' end
  from claimed c join attempt a on a.attempt_id = c.attempt_id
  cross join lateral (values (1, 'started'), (2, 'routed')) told (at, what)
  where c.is_new or told.what = 'routed' order by c.ordinality, told.at;
end $$;
`;

/**
 * Claims whose keys, steps and money are locked, one after the other: for money that not all of them can have, and
 * for claims of one key, where each supersedes the one before.
 */
const claimSingly = `
create function claim_singly(p_claims claim_request[], p_now timestamptz, p_is_reserved boolean)
returns table (outcome text, number int, counted int, output json) language plpgsql as $$
declare
  c claim_request;
begin
  perform 1 from instance i where i.instance_id in (select x.instance_id from unnest(p_claims) x)
    order by i.instance_id for no key update;
  foreach c in array p_claims loop
    if not c.is_first then
      perform lose_attempts(array(select a.attempt_id from attempt a
        where a.key = c.key and a.state in ('reserved', 'dispatched')));
    end if;
    return query select s.outcomes[1], s.numbers[1], s.counted[1], s.outputs[1] from claim_set(array[c], p_now,
      case when c.reserved_nano > 0 and not p_is_reserved then reserve_budgets(array[c], p_now) end,
      c.reserved_nano > 0, c.run_id is not null, not c.is_first) s;
  end loop;
end $$;
`;

/**
 * One turn of a lane: what ended, then what is claimed, with results in that order. Everything is locked first, in the
 * one order. In a turn that need not be durable, ends are those of free calls without a step.
 */
const takeTurn = `
create function take_turn(p_ends json, p_outputs json[], p_claims json, p_durable boolean)
returns table (outcome text, number int, counted int, output json) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  v_now timestamptz;
  v_ends attempt_end[] := array(select json_populate_recordset(null::attempt_end, p_ends));
  v_claims claim_request[] := array(select json_populate_recordset(null::claim_request, p_claims));
  v_is_paid boolean;
  v_has_steps boolean;
  v_has_earlier boolean;
  v_ends_steps boolean;
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
  select bool_or(x.reserved_nano > 0), bool_or(x.run_id is not null), bool_or(not x.is_first)
    into v_is_paid, v_has_steps, v_has_earlier from unnest(v_claims) x;
  if v_is_paid and not p_durable then
    raise exception 'a claim with money must be durable';
  end if;
  if v_has_steps or v_has_earlier then
    perform pg_advisory_xact_lock(k) from (
      select distinct hashtextextended(x.key, 0) as k from unnest(v_claims) x
      where not x.is_first or x.run_id is not null order by 1) keys;
  end if;
  select coalesce(bool_or(e.is_step), false) into v_ends_steps from unnest(v_ends) e;
  if v_has_steps or v_ends_steps then
    perform 1 from step s where (s.run_id, s.step_id, s.item) in (
        select x.run_id, x.step_id, x.item from unnest(v_claims) x
        union select a.run_id, a.step_id, a.item from unnest(v_ends) e join attempt a using (attempt_id))
      order by s.run_id, s.step_id, s.item for update;
  end if;
  if v_has_earlier or cardinality(v_ends) > 1 then
    with open as (
      select a.attempt_id, a.reserved_nano, e.attempt_id is null as is_earlier from attempt a
      left join unnest(v_ends) e on e.attempt_id = a.attempt_id
      where a.attempt_id in (select x.attempt_id from unnest(v_ends) x
          union select o.attempt_id from unnest(v_claims) x join attempt o on o.key = x.key and not x.is_first
          where o.state in ('reserved', 'dispatched'))
      order by a.attempt_id for update of a
    ) select array_agg(o.attempt_id) filter (where o.reserved_nano > 0),
        array_agg(o.attempt_id) filter (where o.is_earlier) into v_charged, v_open from open o;
  end if;
  v_now := clock_timestamp();
  if v_has_earlier and v_charged is not null then
    perform lock_charges(v_claims, v_charged, v_now);
  end if;

  if cardinality(v_ends) > 0 and not p_durable then
    update attempt a set state = e.state, ambiguity = e.ambiguity, counted = e.counted, settled_nano = 0,
        certainty = e.certainty, duration_ms = e.duration_ms, error = e.error, finished_at = clock_timestamp()
      from unnest(v_ends) e
      where a.attempt_id = e.attempt_id and a.token = e.token and a.state in ('reserved', 'dispatched')
        and a.run_id is null and a.reserved_nano = 0;
    return query select 'settled', 0, 0, null::json from unnest(v_ends);
  elsif cardinality(v_ends) > 0 then
    select s.outcomes, s.charged, s.back, s.spent into v_outcomes, v_paid, v_back, v_spent
      from settle_all(v_ends, p_outputs, v_ends_steps) s;
    return query select o, 0, 0, null::json from unnest(v_outcomes) o;
  end if;
  if v_open is not null then -- the claims replace them, except where the step has ended
    perform lose_attempts(array(select a.attempt_id from unnest(v_open) o (attempt_id) join attempt a using (attempt_id)
      left join step s on s.run_id = a.run_id and s.step_id = a.step_id and s.item = a.item
      where coalesce(s.state not in ('succeeded', 'failed', 'unknown', 'skipped', 'cancelled'), true)));
  end if;
  if v_paid is not null then
    v_refusal := charge_budgets(v_paid, v_back, v_spent, v_claims, v_now);
  elsif v_is_paid then
    v_refusal := reserve_budgets(v_claims, v_now);
  end if;
  if cardinality(v_claims) = 0 then
    return;
  end if;
  if cardinality(v_claims) > 1 and (v_refusal is not null or v_has_earlier and exists (
      select 1 from unnest(v_claims) x where not x.is_first group by x.key having count(*) > 1)) then
    return query select * from claim_singly(v_claims, v_now, v_refusal is null);
  else
    return query select unnest(s.outcomes), unnest(s.numbers), unnest(s.counted), unnest(s.outputs)
      from claim_set(v_claims, v_now, v_refusal, v_is_paid, v_has_steps, v_has_earlier) s;
  end if;
end $$;
`;

const parts = [keepTexts, settleAll, claimSet, beginSteps, claimSingly, takeTurn];

export const claimInSets = {
  name: '0008-claim-in-sets',
  up: async (db: Knex): Promise<void> => {
    for (const part of parts) await db.raw(part);
  },
};
