/**
 * Sums what the runs that a step has started, and all runs below them, have cost; item 0: of all items. It takes no lock.
 */
export const costBelow = `
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
