/**
 * Asks the runs that a run has started to cancel, and those that are cancelling already to terminate. It is a statement of
 * its own, so that it sees a run whose insertion was waited for. It locks those runs, in no order; nobody locks several
 * but from above to below. It returns how many.
 */
export const stopChildren = `
create function stop_children(p_run_id text, p_mode text, p_reason text) returns int language plpgsql as $$
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
`;
