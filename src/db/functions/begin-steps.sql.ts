/**
 * Begins or resumes the steps of claims that were made, and tells the logs of their runs. What a step waited for is
 * forgotten. The steps that are there are locked.
 */
export const beginSteps = `
create function begin_steps(p_claims claim_request[], p_outcomes text[]) returns void language plpgsql as $$
begin
  with claimed as (
    select c.*, s.run_id is null as is_new, s.started_at is null as begins
    from unnest(p_claims) with ordinality c
    left join step s on s.run_id = c.run_id and s.step_id = c.step_id and s.item = c.item
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
