/**
 * Closes open attempts whose outcome nobody will report; what they reserved counts as spent, estimated. They keep their
 * token, so that the truth may still correct the estimate. It locks the attempts, then their budgets (L3, L4); callers
 * that pass more than one have locked them in their order.
 */
export const loseAttempts = `
create function lose_attempts(p_attempt_ids text[]) returns int language plpgsql as $$
declare
  v_ids text[];
  v_held bigint[];
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
  select array_agg(attempt_id), array_agg(reserved_nano) into v_ids, v_held from lost;
  perform charge_budgets(m.ids, m.back, m.held, '{}', clock_timestamp()) from (
    select array_agg(id) as ids, array_agg(-held) as back, array_agg(held) as held
    from unnest(v_ids, v_held) t (id, held) where held > 0) m where m.ids is not null;
  return coalesce(cardinality(v_ids), 0);
end $$;
`;
