-- schema 1

-- The functions that find the runs below a run, or begin its steps.

-- Returns a run and all runs below it. It takes no lock.
create or replace function with_runs_below(p_run_id text) returns text[] language sql stable as $$
  with recursive below as (
    select p_run_id as run_id
    union all
    select r.run_id from below b join run r on r.parent_run_id = b.run_id
  )
  select array_agg(run_id) from below
$$;

-- Returns the scopes that calls of a run belong to: its pipeline, and key and labels of the run at the top. It takes no
-- lock.
create or replace function run_scopes(p_run text) returns text[] language sql stable as $$
  select array_remove(array['key:' || t.key_id, 'pipeline:' || r.pipeline], null)
    || array(select 'label:' || key || '=' || value from jsonb_each_text(t.labels))
  from run r join run t on t.run_id = coalesce(r.ancestors[1], r.run_id) where r.run_id = p_run
$$;

-- Sums the cost of the runs that a step has started, and of all runs below them; item 0: for all items. It takes no
-- lock.
create or replace function cost_below(p_run_id text, p_step_id text, p_item int) returns bigint language sql stable as $$
  with recursive below as (
    select r.run_id from run r
    where r.parent_run_id = p_run_id and r.parent_step_id = p_step_id and p_item in (0, r.parent_item)
    union all
    select r.run_id from below b join run r on r.parent_run_id = b.run_id
  )
  select coalesce(sum(a.settled_nano), 0)::bigint from below join attempt a using (run_id)
$$;

-- Asks the child runs of a run to cancel; mode `terminate` also applies to those that are cancelling gracefully. It is
-- a separate statement, so that it sees a run whose insertion it waited for. It locks those runs, in no order; every
-- caller that locks several does so from above to below. It returns how many.
create or replace function stop_children(p_run_id text, p_mode text, p_reason text) returns int language plpgsql as $$
declare
  v_asked int;
begin
  with asked as (
    update run set state = 'cancelling', cancel_requested_at = clock_timestamp(), cancel_delivered_at = null,
      cancel_mode = p_mode, cancel_reason = p_reason
    where parent_run_id = p_run_id and (state in ('queued', 'running', 'paused')
      or state = 'cancelling' and p_mode = 'terminate' and cancel_mode is distinct from 'terminate')
    returning run_id
  ), logged as (
    insert into event (run_id, type, data)
    select run_id, 'run.cancelling', jsonb_build_object('reason', p_reason, 'mode', p_mode) from asked
  )
  select count(*) into v_asked from asked;
  return v_asked;
end $$;

-- Begins or resumes the steps of successful claims, and logs that. It clears the wait of a step. Existing steps must be
-- locked.
create or replace function begin_steps(p_claims claim_request[], p_outcomes text[], p_numbers int[], p_endpoints text[])
returns void language plpgsql as $$
begin
  with claimed as (
    select c.*, s.run_id is null as is_new, s.started_at is null as begins
    from unnest(p_claims) with ordinality c
    left join lateral (
      select s.run_id, s.started_at from step s
      where s.run_id = c.run_id and s.step_id = c.step_id and s.item = c.item offset 0) s on true
    where c.step_id is not null and p_outcomes[c.ordinality] = 'claimed'
  ), begun as (
    insert into step (run_id, step_id, item, revision, state, started_at)
    select c.run_id, c.step_id, c.item, c.revision, 'running', clock_timestamp() from claimed c where c.is_new
  ), resumed as (
    update step s set state = 'running', revision = c.revision, started_at = coalesce(s.started_at, clock_timestamp()),
      awaiting = null, wait_since = null, wait_until = null, wake_requested_at = null, budget_scope = null,
      awaited_capability = null
    from claimed c
    where not c.is_new and s.run_id = c.run_id and s.step_id = c.step_id and s.item = c.item
      and s.run_id = any (array(select x.run_id from unnest(p_claims) x))
      and s.step_id = any (array(select x.step_id from unnest(p_claims) x))
      and s.item = any (array(select x.item from unnest(p_claims) x))
  )
  insert into event (run_id, type, step_id, item, attempt, data)
  select c.run_id, 'step.' || told.what, c.step_id, nullif(c.item, 0),
    case told.what when 'routed' then p_numbers[c.ordinality] end,
    case told.what when 'routed' then jsonb_build_object('attempt_id', c.attempt_id,
      'endpoint', p_endpoints[c.ordinality], 'reason', c.decision -> 'reason') else '{}' end
  from claimed c
  cross join lateral (values (1, 'started'), (2, 'routed')) told (at, what)
  where c.begins or told.what = 'routed' order by c.ordinality, told.at;
end $$;
