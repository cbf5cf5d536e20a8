/**
 * Gives a run and all below it. It takes no lock.
 */
export const withRunsBelow = `
create function with_runs_below(p_run_id text) returns text[] language sql stable as $$
  with recursive below as (
    select p_run_id as run_id
    union all
    select r.run_id from below b join run r on r.parent_run_id = b.run_id
  )
  select array_agg(run_id) from below
$$;
`;
