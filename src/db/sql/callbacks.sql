-- schema 1

-- Calls whose instance has answered 202 and sends its answer later (K1 to K6, use-cases/callbacks/). The lock order (L1
-- to L6) is in claims.sql.

-- Parks a call that its instance has accepted: its attempt stays open without a process, and its step waits, until the deadline that
-- counts from the claim. An answer that was faster than this wakes the step at once. It returns the deadline; null:
-- the attempt is not this process's any more. It locks the step, then the attempt (L2, L3).
create or replace function park_call(p_attempt text, p_token uuid, p_timeout_ms double precision, p_later jsonb)
returns timestamptz language plpgsql as $$
declare
  a record;
  v_until timestamptz;
begin
  select x.run_id, x.step_id, x.item, x.number into a from attempt x where x.attempt_id = p_attempt;
  perform 1 from step s where s.run_id = a.run_id and s.step_id = a.step_id and s.item = a.item for update;
  update attempt x set token = gen_random_uuid(), later = p_later,
      answers_by = x.started_at + p_timeout_ms * interval '1 millisecond',
      lease_until = x.started_at + p_timeout_ms * interval '1 millisecond'
    where x.attempt_id = p_attempt and x.token = p_token and x.state = 'dispatched' returning x.answers_by into v_until;
  if v_until is null then
    return null;
  end if;
  with waiting as (
    update step s set state = 'waiting', awaiting = 'callback', wait_since = clock_timestamp(), wait_until = v_until,
        wake_requested_at = case when exists (select from callback_answer c where c.attempt_id = p_attempt and not c.is_late)
          then clock_timestamp() end
      where s.run_id = a.run_id and s.step_id = a.step_id and s.item = a.item and s.state in ('running', 'retrying')
    returning s.run_id, s.step_id, s.item
  )
  insert into event (run_id, type, step_id, item, attempt, data)
  select w.run_id, 'step.waiting', w.step_id, nullif(w.item, 0), a.number, jsonb_build_object('awaiting', 'callback',
    'until', to_char(v_until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) from waiting w;
  return v_until;
end $$;

-- Stores the answer to an attempt that came at its address. taken: its call waits for it, and its step is woken.
-- overdue: it came at the deadline or after it, and the call has not ended yet; the call times out.
-- late: nothing waits for it, and only the money is left to settle. again: the address was used. unknown: there is no
-- such attempt, or its project was erased. It locks the step, then the attempt (L2, L3).
create or replace function receive_answer(p_attempt text, p_body bytea, p_key text) returns text language plpgsql as $$
declare
  a record;
  s record;
  v_now timestamptz;
  v_is_open boolean;
  v_is_overdue boolean;
begin
  select x.run_id, x.step_id, x.item, x.instance_id into a from attempt x where x.attempt_id = p_attempt;
  if not found or a.instance_id = 'erased' then
    return 'unknown';
  end if;
  select x.state, x.awaiting, x.finished_at, r.finished_at as run_finished_at into s from step x join run r using (run_id)
    where x.run_id = a.run_id and x.step_id = a.step_id and x.item = a.item for update of x;
  select x.run_id, x.step_id, x.item, x.number, x.state, coalesce(x.answers_by, (x.later ->> 'until')::timestamptz) as until
    into a from attempt x where x.attempt_id = p_attempt for no key update;
  v_now := clock_timestamp();
  v_is_open := a.state = 'dispatched'
    and (a.step_id is null or s.finished_at is null and s.run_finished_at is null);
  v_is_overdue := v_is_open and coalesce(v_now >= a.until, false);
  insert into callback_answer (attempt_id, body, key_id, is_late, received_at)
    values (p_attempt, p_body, p_key, not v_is_open or v_is_overdue, v_now) on conflict do nothing;
  if not found then
    return 'again';
  elsif not v_is_open then
    return 'late';
  elsif v_is_overdue then
    return 'overdue';
  end if;
  if a.step_id is not null then
    insert into event (run_id, type, step_id, item, attempt, data)
    values (a.run_id, 'step.answered', a.step_id, nullif(a.item, 0), a.number, '{}');
  end if;
  update step x set wake_requested_at = clock_timestamp()
    where x.run_id = a.run_id and x.step_id = a.step_id and x.item = a.item and x.state = 'waiting'
      and x.awaiting = 'callback';
  return 'taken';
end $$;

-- Gives the open call of a key to a process that continues with it: its answer has come, or its deadline is over. Its
-- step runs again, and stops with the attempt. waiting: neither is true. held: another process has it.
-- none: no call of the key is left to its instance. It locks the step, then the attempt (L2, L3).
create or replace function adopt_call(p_key text, p_run text, p_step text, p_item int, p_token uuid, p_lease_ms int)
returns table (outcome text, answers_by timestamptz, attempt_id text, waited_ms double precision)
language plpgsql as $$
declare
  s record;
  a record;
  v_now timestamptz;
begin
  select x.state, x.awaiting, x.wait_since, x.finished_at into s from step x
    where x.run_id = p_run and x.step_id = p_step and x.item = p_item for update;
  select x.attempt_id, x.answers_by, x.lease_until, exists (
      select from callback_answer c where c.attempt_id = x.attempt_id and c.body is not null and not c.is_late) as is_answered into a
    from attempt x where x.key = p_key and x.state = 'dispatched' for no key update;
  v_now := clock_timestamp();
  answers_by := a.answers_by;
  attempt_id := a.attempt_id;
  waited_ms := greatest(0, extract(epoch from v_now - coalesce(s.wait_since, v_now)) * 1000);
  outcome := case
    when a.attempt_id is null or s.finished_at is not null or (a.answers_by is null and not a.is_answered) then 'none'
    when a.lease_until > v_now and a.lease_until is distinct from a.answers_by then 'held'
    when a.is_answered or a.answers_by <= v_now then 'adopted'
    else 'waiting' end;
  if outcome = 'adopted' then
    update attempt x set token = p_token, lease_until = v_now + p_lease_ms * interval '1 millisecond'
      where x.attempt_id = a.attempt_id;
    update step x set state = 'running', awaiting = null, wait_since = null, wait_until = null, wake_requested_at = null
      where x.run_id = p_run and x.step_id = p_step and x.item = p_item;
  end if;
  return next;
end $$;
