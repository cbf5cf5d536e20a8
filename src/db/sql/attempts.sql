-- schema 1

-- The functions that end attempts. Claims, and the lock order (L1 to L6), are in claims.sql.

-- R6: the instances that have failed a key, each with how many of those attempts count against `retry.max`; and the
-- errors of those that were answered (C10).
create or replace function failures_of(p_key text) returns json language sql stable as $$
  select json_build_object('counted', json_object_agg(f.instance_id, f.counted), 'errors', (
    select coalesce(json_agg(a.error order by a.number), '[]') from attempt a
    where a.key = p_key and a.has_failed and a.ambiguity in ('answered', 'rejected') and a.error is not null))
  from (
    select a.instance_id, count(*) filter (where a.counted) as counted
    from attempt a where a.key = p_key and a.has_failed group by a.instance_id) f
$$;

-- Writes ends of attempts with their outputs, in the given order, and with each the end of its step. superseded = a
-- later attempt has taken over; then only money is corrected. A repeated end has no second effect. The budgets are left
-- to the caller: it returns the charged attempts, their refunds and costs. The steps must be locked; it locks the
-- attempts, by id (L3).
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
      asked_pause_ms = e.asked_pause_ms, is_stopped = e.is_stopped, model = e.model, tokens = e.tokens,
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

-- Stores the contents of ended calls, for the projects that keep them.
create or replace function keep_contents(p_ends attempt_end[]) returns void language sql as $$
  insert into call_content (attempt_id, project_id, content)
  select a.attempt_id, a.project_id, e.content from unnest(p_ends) e
  cross join lateral (
    select a.attempt_id, a.project_id from attempt a where a.attempt_id = e.attempt_id and a.token = e.token offset 0) a
  join project p on p.project_id = a.project_id and p.content_days is not null
  where e.content is not null on conflict do nothing
$$;

-- Stores the outputs of ended calls as responses under their callers' keys, if the caller still holds the key. A
-- repeated response is stored once. It locks the keys, in their order (L3).
create or replace function keep_answers(p_ends attempt_end[], p_outputs json[]) returns void language sql as $$
  with held as (
    select i.project_id, i.request, i.key, (e.keeps ->> 'status')::int as status, o.output
    from unnest(p_ends) with ordinality e
    join unnest(p_outputs) with ordinality o (output, ordinality) using (ordinality)
    join idempotency i on i.project_id = e.keeps ->> 'project_id' and i.request = e.keeps ->> 'request'
      and i.key = e.keeps ->> 'key' and i.status = 0 and i.answer #>> '{}' = e.keeps ->> 'holder'
    where e.keeps is not null order by i.project_id, i.request, i.key for update of i
  )
  update idempotency i set status = h.status, answer = h.output, created_at = clock_timestamp()
  from held h where i.project_id = h.project_id and i.request = h.request and i.key = h.key
$$;

-- Closes open attempts whose outcome will not be reported; their reservation counts as spent, estimated. They keep
-- their token, so that a late report can still correct the estimate. It locks the attempts, then their budgets (L3,
-- L4); callers that pass more than one have locked them in their order.
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
