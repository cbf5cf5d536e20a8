/**
 * Writes ends of attempts with their outputs, in the order given, and with each the end of its step. superseded = a later
 * attempt has taken over; then only money is corrected. An end that is told twice is told once. The budgets are left to
 * the caller: which attempts are charged, what they give back and cost. The steps are locked; it locks the attempts, by
 * id (L3).
 */
export const settleEnds = `
create function settle_ends(p_ends attempt_end[], p_outputs json[], p_has_steps boolean,
  out outcomes text[], out charged text[], out back bigint[], out spent bigint[]) language plpgsql as $$
declare
  v_ended text[];
  v_changed int;
begin
  with ending as (
    select e.*, a.state as was, a.reserved_nano, a.project_id, a.capability, a.budget_window,
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
      array_agg(case when e.was = 'lost' then 0 else -e.reserved_nano end) filter (where e.reserved_nano > 0),
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
`;
