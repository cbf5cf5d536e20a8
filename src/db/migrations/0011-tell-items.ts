/**
 * Claims and ends know of items and of steps that waited, as in migration 0008 otherwise. A step that waited for money
 * or an instance before it was ever called begins with its first claim, and what it waited for is forgotten.
 */
import type { Knex } from 'knex';

/** Apart from what it waits for, so that it goes on waiting for the same once it was woken for it. */
const awaitedCapability = `
alter table step add column awaited_capability text; -- whose appearance wakes it; null once it has
create index step_to_wake_for on step (awaited_capability)
  where awaited_capability is not null; -- maintenance: capabilities that appear
`;

/** The steps of claims that were made, and the lines of their runs' logs. */
const beginSteps = `
create or replace function begin_steps(p_claims claim_request[], p_outcomes text[]) returns void language plpgsql as $$
begin
  with claimed as (
    select c.*, s.run_id is null as is_new, s.started_at is null as begins
    from unnest(p_claims) with ordinality c
    left join step s on s.run_id = c.run_id and s.step_id = c.step_id and s.item = c.item
    where c.run_id is not null and p_outcomes[c.ordinality] = 'claimed'
  ), begun as (
    insert into step (run_id, step_id, item, revision, state, started_at)
    select c.run_id, c.step_id, c.item, c.revision, 'running', clock_timestamp() from claimed c where c.is_new
  ), resumed as (
    update step s set state = 'running', revision = c.revision, started_at = coalesce(s.started_at, clock_timestamp()),
      awaiting = null, wait_since = null, wait_until = null, wake_requested_at = null, budget_scope = null,
      awaited_capability = null
    from claimed c
    where not c.is_new and s.run_id = c.run_id and s.step_id = c.step_id and s.item = c.item
  )
  insert into event (run_id, type, step_id, item, attempt, data)
  select c.run_id, 'step.' || told.what, c.step_id, nullif(c.item, 0),
    case told.what when 'routed' then a.number end,
    case told.what when 'routed' then jsonb_build_object('attempt_id', a.attempt_id, 'endpoint', a.endpoint,
      'reason', c.decision -> 'reason') else '{}' end
  from claimed c join attempt a on a.attempt_id = c.attempt_id
  cross join lateral (values (1, 'started'), (2, 'routed')) told (at, what)
  where c.begins or told.what = 'routed' order by c.ordinality, told.at;
end $$;
`;

/**
 * Ends of attempts with their outputs, in the order given, when their steps are locked; with each the end of its step.
 * superseded = a later attempt has taken over; then only money is corrected. An end that is told twice is told once.
 * The budgets are left to the caller: which attempts are charged, what they give back and cost.
 */
const settleAll = `
create or replace function settle_all(p_ends attempt_end[], p_outputs json[], p_has_steps boolean,
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
      returning a.run_id, e.step_state, a.step_id, a.item, a.number, e.event_data
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
    left join attempt a on a.attempt_id = e.attempt_id and a.token = e.token
    order by e.ordinality);
end $$;
`;

/** What the runs that a step has started, and all runs below them, have cost. Item 0: of all items. */
const costBelow = `
create function cost_below(p_run_id text, p_step_id text, p_item int) returns bigint language sql stable as $$
  with recursive below as (
    select r.run_id from run r
    where r.parent_run_id = p_run_id and r.parent_step_id = p_step_id and p_item in (0, r.parent_item)
    union all
    select r.run_id from below b join run r on r.parent_run_id = b.run_id
  )
  select coalesce(sum(a.settled_nano), 0)::bigint from below join attempt a using (run_id)
$$;
`;

export const tellItems = {
  name: '0011-tell-items',
  up: async (db: Knex): Promise<void> => {
    for (const part of [awaitedCapability, beginSteps, settleAll, costBelow]) await db.raw(part);
  },
};
