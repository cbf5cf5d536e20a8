/**
 * Claims of a turn in one statement instead of one after the other, and their texts kept as they were sent: taking
 * each decision apart took longer than the claim. The order of locks is that of migration 0005.
 */
import type { Knex } from 'knex';

/** Decisions are read as a whole, never searched. */
const keepTexts = `
alter table attempt alter column decision type json, alter column inputs type json;
alter type claim_request alter attribute decision set data type json, alter attribute inputs set data type json;
drop function take_turn, claim_all, claim_locked;
`;

/**
 * Claims whose instances and all before them are locked. Null p_refusal = the money of all of them is reserved. An
 * instance that must be idle takes one call, and is full for the others that want it idle; one whose breaker is half
 * open takes one call and is gone for the rest. Answers in the order given; money of those that came to nothing goes
 * back.
 */
const claimSet = `
create function claim_set(p_claims claim_request[], p_now timestamptz, p_refusal jsonb, p_is_paid boolean,
  p_has_steps boolean, p_has_earlier boolean,
  out outcomes text[], out numbers int[], out counted int[], out outputs json[]) language plpgsql as $$
declare
  v_ended text[] := '{}'; -- by the step: answered, closed or null
  v_trials text[];
begin
  if p_has_steps then
    select array_agg(case when s.state = 'succeeded' then 'answered'
          when s.state in ('failed', 'unknown', 'skipped', 'cancelled') then 'closed' end order by c.ordinality),
        array_agg(case s.state when 'succeeded' then s.output end order by c.ordinality)
      into v_ended, outputs
      from unnest(p_claims) with ordinality c
      left join step s on s.run_id = c.run_id and s.step_id = c.step_id and s.item = c.item;
  end if;
  if p_has_earlier then
    select array_agg(e.made order by c.ordinality), array_agg(e.counted order by c.ordinality)
      into numbers, counted
      from unnest(p_claims) with ordinality c
      left join lateral (select count(*)::int as made, (count(*) filter (where a.counted))::int as counted
        from attempt a where a.key = c.key and not c.is_first) e on true;
  end if;

  with asked as (
    select c.*, i.endpoint, i.max_concurrency, i.breaker_until is not null as is_trial,
      case
        when v_ended[c.ordinality] is not null then v_ended[c.ordinality]
        when p_refusal is not null and c.reserved_nano > 0 then 'over_budget'
        when i.state in ('up', 'suspect') and i.cost_type = c.cost_type and i.rate_usd = c.rate_usd
          and coalesce(i.breaker_until <= clock_timestamp(), true) then null
        else 'gone'
      end as refusal
    from unnest(p_claims) with ordinality c left join instance i on i.instance_id = c.instance_id
  ), load as (
    select n.instance_id, (select count(*) from attempt a where a.instance_id = n.instance_id
      and a.state in ('reserved', 'dispatched') and a.lease_until > clock_timestamp()) as held
    from (select distinct a.instance_id from asked a where a.refusal is null) n
  ), placed as ( -- those that want it idle first; of these only the first can have it
    select a.*, l.held, row_number() over place as place, count(*) filter (where a.must_be_idle) over place as wanting_idle
    from asked a left join load l on l.instance_id = a.instance_id
    window place as (partition by a.instance_id, a.refusal order by a.must_be_idle desc, a.ordinality
      rows between unbounded preceding and unbounded following)
  ), judged as (
    select p.*, coalesce(p.refusal, case
        when p.must_be_idle and (p.held > 0 or p.place > 1) then 'full'
        when p.is_trial and p.place > 1 then 'gone'
        when p.held + p.place - case when p.must_be_idle then 0
          when p.held = 0 then greatest(p.wanting_idle - 1, 0) else p.wanting_idle end > p.max_concurrency then 'full'
        else 'claimed'
      end) as outcome
    from placed p order by p.ordinality
  ), made as (
    insert into attempt (attempt_id, project_id, key, number, run_id, step_id, item, capability, instance_id,
      endpoint, state, token, lease_until, cost_type, rate_usd, reserved_nano, decision, inputs, started_at,
      budget_window)
    select j.attempt_id, j.project_id, j.key, coalesce(numbers[j.ordinality], 0) + 1, j.run_id, j.step_id, j.item,
      j.capability, j.instance_id, j.endpoint, 'dispatched', j.token,
      clock_timestamp() + j.lease_ms * interval '1 millisecond', j.cost_type, j.rate_usd, j.reserved_nano, j.decision,
      j.inputs, p_now, case when j.reserved_nano > 0
        then (select (p_now at time zone p.timezone)::date from project p where p.project_id = j.project_id) end
    from judged j where j.outcome = 'claimed'
  )
  select array_agg(j.outcome), array_agg(case j.outcome when 'claimed' then coalesce(numbers[j.ordinality], 0) + 1 else 0 end),
      array_agg(case j.outcome when 'claimed' then coalesce(counted[j.ordinality], 0) else 0 end),
      array_agg(case j.outcome when 'answered' then outputs[j.ordinality] when 'over_budget' then p_refusal::json end),
      array_agg(j.instance_id) filter (where j.is_trial and j.outcome = 'claimed')
    into outcomes, numbers, counted, outputs, v_trials from judged j;

  if v_trials is not null then -- the one trial of this window
    update instance i set breaker_until = clock_timestamp() + c.lease_ms * interval '1 millisecond'
      from unnest(p_claims) with ordinality c
      where i.instance_id = any (v_trials) and i.instance_id = c.instance_id and outcomes[c.ordinality] = 'claimed';
  end if;
  if p_is_paid then
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window)
    select c.attempt_id, 'reserve', c.project_id, c.capability, c.reserved_nano, 'exact', a.budget_window
      from unnest(p_claims) with ordinality c join attempt a on a.attempt_id = c.attempt_id
      where c.reserved_nano > 0 and outcomes[c.ordinality] = 'claimed';
    if p_refusal is null and 'claimed' <> any (outcomes) then
      perform release_budgets((select array_agg(p_claims[at]) from generate_subscripts(p_claims, 1) at
        where outcomes[at] <> 'claimed'), p_now);
    end if;
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
 * Claims whose keys, steps and instances are locked, one after the other: for money that not all of them can have, and
 * for claims of one key, where each supersedes the one before.
 */
const claimSingly = `
create function claim_singly(p_claims claim_request[], p_now timestamptz, p_is_reserved boolean)
returns table (outcome text, number int, counted int, output json) language plpgsql as $$
declare
  c claim_request;
begin
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
  v_ends_steps boolean := false;
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
  if p_durable and cardinality(v_ends) > 0 then
    select coalesce(bool_or(a.run_id is not null), false) into v_ends_steps
      from attempt a where a.attempt_id in (select e.attempt_id from unnest(v_ends) e);
  end if;
  if v_has_steps or v_ends_steps then
    perform 1 from step s where (s.run_id, s.step_id, s.item) in (
        select x.run_id, x.step_id, x.item from unnest(v_claims) x
        union select a.run_id, a.step_id, a.item from unnest(v_ends) e join attempt a using (attempt_id))
      order by s.run_id, s.step_id, s.item for update;
  end if;
  if v_has_earlier or (p_durable and cardinality(v_ends) > 0) or cardinality(v_ends) > 1 then
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
  perform 1 from instance i where i.instance_id in (select x.instance_id from unnest(v_claims) x)
    order by i.instance_id for no key update;
  if cardinality(v_claims) > 1 and (v_refusal is not null or v_has_earlier and exists (
      select 1 from unnest(v_claims) x where not x.is_first group by x.key having count(*) > 1)) then
    return query select * from claim_singly(v_claims, v_now, v_refusal is null);
  else
    return query select unnest(s.outcomes), unnest(s.numbers), unnest(s.counted), unnest(s.outputs)
      from claim_set(v_claims, v_now, v_refusal, v_is_paid, v_has_steps, v_has_earlier) s;
  end if;
end $$;
`;

const parts = [keepTexts, claimSet, beginSteps, claimSingly, takeTurn];

export const claimInSets = {
  name: '0007-claim-in-sets',
  up: async (db: Knex): Promise<void> => {
    for (const part of parts) await db.raw(part);
  },
};
