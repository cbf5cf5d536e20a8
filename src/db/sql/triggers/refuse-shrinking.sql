-- schema 1

-- Refuses a change that removes or alters elements of an escalation's lists. It takes no lock.
create or replace function refuse_shrinking() returns trigger language plpgsql as $$
begin
  if exists (select 1 from (values (old.escalation_history, new.escalation_history),
        (old.escalation_advice, new.escalation_advice)) list (was, is_now)
      cross join lateral jsonb_array_elements(list.was) with ordinality e (element, place)
      where list.is_now -> (e.place - 1)::int is distinct from e.element) then
    raise exception 'the lists of escalation % only grow', old.escalation_id;
  end if;
  return new;
end $$;
