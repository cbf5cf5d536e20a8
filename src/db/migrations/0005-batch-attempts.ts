/**
 * Claims and settlements, one or many at once. Every transaction that takes money locks in this order: keys, steps,
 * attempts, budgets (by scope and window), instances; within a kind by key. So nothing deadlocks. Commits are
 * asynchronous only where a crash may take them back: a lost claim on a free instance expires by itself.
 */
import type { Knex } from 'knex';

/**
 * For every batch the same plan, by index, whatever the statistics say: planning a settlement takes longer than making
 * it, and a plan made when the tables were empty would read all of them.
 */
const steady = `set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
  set enable_hashjoin = off set enable_mergejoin = off set jit = off`;

const types = `
create type claim_request as (
  attempt_id text, token uuid, key text, is_first boolean, project_id text,
  run_id text, step_id text, item int, revision int,
  capability text, instance_id text, must_be_idle boolean, cost_type text, rate_usd numeric,
  lease_ms int, reserved_nano bigint, decision jsonb, inputs jsonb
);
create type attempt_end as (
  attempt_id text, token uuid, state text, ambiguity text, counted boolean,
  settled_nano bigint, certainty text, duration_ms double precision, error jsonb,
  step_state text, event_data jsonb
);
`;

/**
 * Closes open attempts whose outcome nobody will report; what they reserved counts as spent, estimated. They keep
 * their token, so that the truth may still correct the estimate.
 */
const loseAttempts = `
create function lose_attempts(p_attempt_ids text[]) returns int language plpgsql as $$
declare
  v_ids text[];
  v_held bigint[];
begin
  with lost as (
    update attempt set state = 'lost', ambiguity = 'ambiguous', counted = true,
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
  select array_agg(attempt_id), array_agg(reserved_nano) into v_ids, v_held from lost;
  perform settle_budgets(m.ids, m.back, m.held) from (
    select array_agg(id) as ids, array_agg(-held) as back, array_agg(held) as held
    from unnest(v_ids, v_held) t (id, held) where held > 0) m where m.ids is not null;
  return coalesce(cardinality(v_ids), 0);
end $$;
`;

/** One claim, when everything that it needs is locked. Null p_refusal = its money is reserved. */
const claimLocked = `
create function claim_locked(c claim_request, p_now timestamptz, p_refusal jsonb)
returns table (outcome text, number int, counted int, output json) language plpgsql as $$
declare
  v_step step;
  v_instance instance;
  v_open text[];
  v_held int;
begin
  if c.run_id is not null then
    select * into v_step from step s
      where s.run_id = c.run_id and s.step_id = c.step_id and s.item = c.item;
    if v_step.state = 'succeeded' then
      return query select 'answered', 0, 0, v_step.output;
      return;
    elsif v_step.state in ('failed', 'unknown', 'skipped', 'cancelled') then
      return query select 'closed', 0, 0, null::json;
      return;
    end if;
  end if;

  number := 1;
  counted := 0;
  if not c.is_first then
    v_open := array(select a.attempt_id from attempt a
      where a.key = c.key and a.state in ('reserved', 'dispatched'));
    if cardinality(v_open) > 0 then
      perform lose_attempts(v_open);
    end if;
    select count(*) + 1, count(*) filter (where a.counted) into number, counted from attempt a where a.key = c.key;
  end if;

  if p_refusal is not null then
    return query select 'over_budget', 0, 0, p_refusal::json;
    return;
  end if;
  select * into v_instance from instance i where i.instance_id = c.instance_id;
  if v_instance.state is null or v_instance.state not in ('up', 'suspect')
      or v_instance.breaker_until > clock_timestamp()
      or v_instance.cost_type <> c.cost_type or v_instance.rate_usd <> c.rate_usd then
    return query select 'gone', 0, 0, null::json;
    return;
  end if;
  select count(*) into v_held from attempt a where a.instance_id = c.instance_id
    and a.state in ('reserved', 'dispatched') and a.lease_until > clock_timestamp();
  if v_held >= v_instance.max_concurrency or (c.must_be_idle and v_held > 0) then
    return query select 'full', 0, 0, null::json;
    return;
  end if;
  if v_instance.breaker_until is not null then -- the one trial of this window
    update instance i set breaker_until = clock_timestamp() + c.lease_ms * interval '1 millisecond'
      where i.instance_id = c.instance_id;
  end if;

  insert into attempt (attempt_id, project_id, key, number, run_id, step_id, item, capability, instance_id,
    endpoint, state, token, lease_until, cost_type, rate_usd, reserved_nano, decision, inputs, started_at,
    budget_window)
  values (c.attempt_id, c.project_id, c.key, number, c.run_id, c.step_id, c.item, c.capability, c.instance_id,
    v_instance.endpoint, 'dispatched', c.token, clock_timestamp() + c.lease_ms * interval '1 millisecond',
    c.cost_type, c.rate_usd, c.reserved_nano, c.decision, c.inputs, p_now,
    case when c.reserved_nano > 0
      then (select (p_now at time zone timezone)::date from project where project_id = c.project_id) end);
  if c.reserved_nano > 0 then
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window)
    select c.attempt_id, 'reserve', c.project_id, c.capability, c.reserved_nano, 'exact', a.budget_window
    from attempt a where a.attempt_id = c.attempt_id;
  end if;

  if c.run_id is not null then
    if v_step.run_id is null then
      insert into step (run_id, step_id, item, revision, state, started_at)
        values (c.run_id, c.step_id, c.item, c.revision, 'running', clock_timestamp());
      insert into event (run_id, type, step_id) values (c.run_id, 'step.started', c.step_id);
    else
      update step s set state = 'running', revision = c.revision,
          started_at = coalesce(s.started_at, clock_timestamp())
        where s.run_id = c.run_id and s.step_id = c.step_id and s.item = c.item;
    end if;
    insert into event (run_id, type, step_id, attempt, data) values (c.run_id, 'step.routed', c.step_id, number,
      jsonb_build_object('attempt_id', c.attempt_id, 'endpoint', v_instance.endpoint,
        'reason', c.decision -> 'reason'));
  end if;
  outcome := 'claimed';
  return next;
end $$;
`;

/**
 * Claims in the order given, when everything but their instances is locked. Null p_refusal = the money of all of them
 * is reserved; else each is asked for singly.
 */
const claimAll = `
create function claim_all(p_claims claim_request[], p_now timestamptz, p_refusal jsonb)
returns table (outcome text, number int, counted int, output json) language plpgsql as $$
declare
  v_refused claim_request[] := '{}';
  v_refusal jsonb := p_refusal;
  v_is_prepaid boolean := p_refusal is null;
  c claim_request;
begin
  perform 1 from instance i where i.instance_id in (select x.instance_id from unnest(p_claims) x)
    order by i.instance_id for no key update;

  foreach c in array p_claims loop
    if v_is_prepaid or c.reserved_nano = 0 then
      v_refusal := null;
    elsif cardinality(p_claims) > 1 then
      v_refusal := reserve_budgets(array[c], p_now);
    end if;
    select l.outcome, l.number, l.counted, l.output into outcome, number, counted, output
      from claim_locked(c, p_now, v_refusal) l;
    if outcome <> 'claimed' and v_refusal is null and c.reserved_nano > 0 then
      if v_is_prepaid then
        v_refused := v_refused || c;
      else
        perform release_budgets(array[c], p_now); -- for the next one
      end if;
    end if;
    return next;
  end loop;

  if cardinality(v_refused) > 0 then
    perform release_budgets(v_refused, p_now);
  end if;
end $$;
`;

/**
 * Ends of attempts with their outputs, in the order given, when their attempts and steps are locked; with each the
 * end of its step. superseded = a later attempt has taken over; then only money is corrected. An end that is told
 * twice is told once. The budgets are left to the caller: which attempts are charged, what they give back and cost.
 */
const settleAll = `
create function settle_all(p_ends attempt_end[], p_outputs json[], p_has_steps boolean,
  out outcomes text[], out charged text[], out back bigint[], out spent bigint[]) language plpgsql as $$
declare
  v_ended text[];
begin
  with ending as (
    select e.*, a.state as was, a.reserved_nano, a.project_id, a.capability, a.budget_window,
      e.settled_nano - case when a.state = 'lost' then a.settled_nano else 0 end as cost
    from unnest(p_ends) e join attempt a on a.attempt_id = e.attempt_id and a.token = e.token
    where case a.state when 'reserved' then true when 'dispatched' then true
      when 'lost' then a.certainty = 'estimated' and e.certainty = 'exact' and a.reserved_nano > 0 end
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
      array_agg(e.cost) filter (where e.reserved_nano > 0)
    into v_ended, charged, back, spent from ending e;

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
  outcomes := array(
    select case when (a.state, a.duration_ms, a.settled_nano) = (e.state, e.duration_ms, e.settled_nano)
      then 'settled' else 'superseded' end
    from unnest(p_ends) with ordinality e
    left join attempt a on a.attempt_id = e.attempt_id and a.token = e.token
    order by e.ordinality);
end $$;
`;

/**
 * One turn of a lane: what ended, then what is claimed, with results in that order. Everything is locked first, in the
 * one order. In a turn that need not be durable, ends are those of free calls without a step.
 */
const takeTurn = `
create function take_turn(p_ends jsonb, p_outputs json[], p_claims jsonb, p_durable boolean)
returns table (outcome text, number int, counted int, output json) language plpgsql ${steady} as $$
declare
  v_now timestamptz;
  v_ends attempt_end[] := array(select jsonb_populate_record(null::attempt_end, e)
    from jsonb_array_elements(p_ends) with ordinality t (e, o) order by o);
  v_claims claim_request[] := array(select jsonb_populate_record(null::claim_request, e)
    from jsonb_array_elements(p_claims) with ordinality t (e, o) order by o);
  v_is_paid boolean;
  v_has_steps boolean;
  v_has_earlier boolean;
  v_ends_steps boolean := false;
  v_charged text[];
  v_settled record;
  v_refusal jsonb;
begin
  select bool_or(x.reserved_nano > 0), bool_or(x.run_id is not null), bool_or(not x.is_first)
    into v_is_paid, v_has_steps, v_has_earlier from unnest(v_claims) x;
  if v_has_steps or v_has_earlier then
    perform pg_advisory_xact_lock(k) from (
      select distinct hashtextextended(x.key, 0) as k from unnest(v_claims) x
      where not x.is_first or x.run_id is not null order by 1) keys;
  end if;
  if p_durable and cardinality(v_ends) > 0 then
    select coalesce(bool_or(a.run_id is not null), false),
        array_agg(a.attempt_id) filter (where a.reserved_nano > 0)
      into v_ends_steps, v_charged
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
      select a.attempt_id, a.reserved_nano from attempt a
      where a.attempt_id in (select e.attempt_id from unnest(v_ends) e
          union select o.attempt_id from unnest(v_claims) x join attempt o on o.key = x.key and not x.is_first
          where o.state in ('reserved', 'dispatched'))
      order by a.attempt_id for update
    ) select array_agg(o.attempt_id) filter (where o.reserved_nano > 0) into v_charged from open o;
  end if;
  v_now := clock_timestamp();
  if v_has_earlier and v_charged is not null then
    perform lock_charges(v_claims, v_charged, v_now);
  end if;

  if v_is_paid and not p_durable then
    raise exception 'a claim with money must be durable';
  elsif not p_durable then
    perform set_config('synchronous_commit', 'off', true);
    update attempt a set state = e.state, ambiguity = e.ambiguity, counted = e.counted, settled_nano = 0,
        certainty = e.certainty, duration_ms = e.duration_ms, error = e.error, finished_at = clock_timestamp()
      from unnest(v_ends) e
      where a.attempt_id = e.attempt_id and a.token = e.token and a.state in ('reserved', 'dispatched')
        and a.run_id is null and a.reserved_nano = 0;
    return query select 'settled', 0, 0, null::json from unnest(v_ends);
  elsif cardinality(v_ends) > 0 then
    select * into v_settled from settle_all(v_ends, p_outputs, v_ends_steps);
    if v_settled.charged is not null or v_is_paid then
      v_refusal := charge_budgets(v_settled.charged, v_settled.back, v_settled.spent, v_claims, v_now);
    end if;
    return query select s.outcome, 0, 0, null::json from unnest(v_settled.outcomes) with ordinality s (outcome, at)
      order by s.at;
  elsif v_is_paid then
    v_refusal := reserve_budgets(v_claims, v_now);
  end if;
  if cardinality(v_claims) > 0 then
    return query select * from claim_all(v_claims, v_now, v_refusal);
  end if;
end $$;
`;

const parts = [
  'drop function claim_attempt, settle_attempt, lose_attempts',
  types,
  loseAttempts,
  claimLocked,
  claimAll,
  settleAll,
  takeTurn,
];

export const batchAttempts = {
  name: '0005-batch-attempts',
  up: async (db: Knex): Promise<void> => {
    for (const part of parts) await db.raw(part);
  },
};
