/**
 * The two statements around a call: claim_attempt before, settle_attempt after.
 * Claims of one key come one after the other, also before its step has a row. Lock order is always key, step,
 * attempts, instance, so that nothing deadlocks. A claim on a free instance may commit asynchronously (a lost
 * slot expires by itself); a claim with money, and every settlement, is durable.
 */
import type { Knex } from 'knex';

/** Closes open attempts whose outcome nobody will report; what they reserved counts as spent, estimated. */
const loseAttempts = `
create function lose_attempts(p_attempt_ids text[]) returns int language plpgsql as $$
declare
  v_lost int;
begin
  with lost as (
    update attempt set state = 'lost', ambiguity = 'ambiguous', counted = true, token = gen_random_uuid(),
      settled_nano = reserved_nano, certainty = 'estimated', finished_at = clock_timestamp(),
      duration_ms = extract(epoch from clock_timestamp() - started_at) * 1000,
      error = jsonb_build_object('code', 'contact_lost', 'message', 'the process that made the call went away')
    where attempt_id = any (p_attempt_ids) and state in ('reserved', 'dispatched')
    returning *
  ), booked as (
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window)
    select l.attempt_id, 'settle', l.project_id, l.capability, l.settled_nano, 'estimated',
      (l.started_at at time zone p.timezone)::date
    from lost l join project p using (project_id) where l.reserved_nano > 0
  )
  select count(*) into v_lost from lost;
  return v_lost;
end $$;
`;

const claimAttempt = `
create function claim_attempt(
  p_attempt_id text, p_token uuid, p_key text, p_project_id text,
  p_run_id text, p_step_id text, p_item int, p_revision int,
  p_capability text, p_instance_id text, p_must_be_idle boolean,
  p_lease_ms int, p_reserved_nano bigint, p_decision jsonb, p_durable boolean
) returns table (outcome text, number int, counted int, output json)
language plpgsql as $$
declare
  v_step step;
  v_instance instance;
  v_open text[];
  v_held int;
begin
  perform pg_advisory_xact_lock(hashtextextended(p_key, 0));
  if p_run_id is not null then
    select * into v_step from step s
      where s.run_id = p_run_id and s.step_id = p_step_id and s.item = p_item for update;
    if v_step.state = 'succeeded' then
      return query select 'answered', 0, 0, v_step.output;
      return;
    elsif v_step.state in ('failed', 'unknown', 'skipped', 'cancelled') then
      return query select 'closed', 0, 0, null::json;
      return;
    end if;
  end if;

  select array_agg(a.attempt_id) into v_open from attempt a
    where a.key = p_key and a.state in ('reserved', 'dispatched');
  if v_open is not null then
    perform lose_attempts(v_open);
  end if;

  select * into v_instance from instance i where i.instance_id = p_instance_id for no key update;
  if v_instance.state is null or v_instance.state not in ('up', 'suspect') then
    return query select 'gone', 0, 0, null::json;
    return;
  end if;
  select count(*) into v_held from attempt a where a.instance_id = p_instance_id
    and a.state in ('reserved', 'dispatched') and a.lease_until > clock_timestamp();
  if v_held >= v_instance.max_concurrency or (p_must_be_idle and v_held > 0) then
    return query select 'full', 0, 0, null::json;
    return;
  end if;

  select 'claimed', count(*) + 1, count(*) filter (where a.counted), null::json
    into outcome, number, counted, output from attempt a where a.key = p_key;

  insert into attempt (attempt_id, project_id, key, number, run_id, step_id, item, capability, instance_id,
    endpoint, state, token, lease_until, cost_type, rate_usd, reserved_nano, decision)
  values (p_attempt_id, p_project_id, p_key, number, p_run_id, p_step_id, p_item, p_capability, p_instance_id,
    v_instance.endpoint, 'dispatched', p_token, clock_timestamp() + p_lease_ms * interval '1 millisecond',
    v_instance.cost_type, v_instance.rate_usd, p_reserved_nano, p_decision);

  if p_reserved_nano > 0 then
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window)
    select p_attempt_id, 'reserve', p_project_id, p_capability, p_reserved_nano, 'exact',
      (clock_timestamp() at time zone p.timezone)::date from project p where p.project_id = p_project_id;
  elsif v_open is null and not p_durable then
    perform set_config('synchronous_commit', 'off', true);
  end if;

  if p_run_id is not null then
    if v_step.run_id is null then
      insert into step (run_id, step_id, item, revision, state, started_at)
        values (p_run_id, p_step_id, p_item, p_revision, 'running', clock_timestamp());
      insert into event (run_id, type, step_id) values (p_run_id, 'step.started', p_step_id);
    else
      update step s set state = 'running', revision = p_revision,
          started_at = coalesce(s.started_at, clock_timestamp())
        where s.run_id = p_run_id and s.step_id = p_step_id and s.item = p_item;
    end if;
    insert into event (run_id, type, step_id, attempt, data) values (p_run_id, 'step.routed', p_step_id, number,
      jsonb_build_object('attempt_id', p_attempt_id, 'endpoint', v_instance.endpoint,
        'reason', p_decision -> 'reason'));
  end if;
  return next;
end $$;
`;

const settleAttempt = `
create function settle_attempt(
  p_attempt_id text, p_token uuid, p_state text, p_ambiguity text, p_counted boolean,
  p_settled_nano bigint, p_certainty text, p_duration_ms double precision, p_error jsonb,
  p_step_state text, p_output json, p_event_data jsonb
) returns boolean language plpgsql as $$
declare
  v_attempt attempt;
begin
  perform 1 from step s join attempt a using (run_id, step_id, item)
    where a.attempt_id = p_attempt_id for update of s;
  update attempt a set state = p_state, ambiguity = p_ambiguity, counted = p_counted,
      settled_nano = p_settled_nano, certainty = p_certainty, duration_ms = p_duration_ms, error = p_error,
      finished_at = clock_timestamp()
    where a.attempt_id = p_attempt_id and a.token = p_token and a.state in ('reserved', 'dispatched')
    returning * into v_attempt;
  if v_attempt.attempt_id is null then
    return false; -- superseded: a later attempt owns the step now
  end if;

  if v_attempt.reserved_nano > 0 then
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window)
    select p_attempt_id, case when p_state = 'released' then 'release' else 'settle' end, v_attempt.project_id,
      v_attempt.capability, p_settled_nano, coalesce(p_certainty, 'exact'),
      (v_attempt.started_at at time zone p.timezone)::date
    from project p where p.project_id = v_attempt.project_id;
  end if;

  if v_attempt.run_id is not null and p_step_state is not null then
    update step s set state = p_step_state, output = p_output,
        error = case when p_step_state = 'succeeded' then null else p_error end,
        finished_at = case when p_step_state = 'retrying' then null else clock_timestamp() end
      where s.run_id = v_attempt.run_id and s.step_id = v_attempt.step_id and s.item = v_attempt.item
        and s.state in ('running', 'retrying');
    if found then
      insert into event (run_id, type, step_id, attempt, data)
        values (v_attempt.run_id,
          'step.' || case p_step_state when 'unknown' then 'failed' else p_step_state end,
          v_attempt.step_id, v_attempt.number, p_event_data);
    end if;
  end if;
  return true;
end $$;
`;

export const createAttemptFunctions = {
  name: '0002-create-attempt-functions',
  up: async (db: Knex): Promise<void> => {
    for (const text of [loseAttempts, claimAttempt, settleAttempt]) await db.raw(text);
  },
};
