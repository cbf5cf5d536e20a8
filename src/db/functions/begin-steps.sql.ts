/**
 * Begins or resumes the steps of claims that were made, and tells the logs of their runs. What a step waited for is
 * forgotten. The steps that are there are locked.
 */
export const beginSteps = `
create function begin_steps(p_claims claim_request[], p_outcomes text[], p_numbers int[], p_endpoints text[])
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
`;
