/**
 * Claims one after the other, with keys, steps and money locked: for money that not all of them can have, and for claims of
 * one key, where each supersedes the one before, but for one that would begin a step that has begun. It locks all
 * instances first, by id (L5).
 */
export const claimOneByOne = `
create function claim_one_by_one(p_claims claim_request[], p_now timestamptz, p_is_reserved boolean)
returns table (outcome text, number int, counted int, output json) language plpgsql as $$
declare
  c claim_request;
begin
  perform 1 from instance i where i.instance_id in (select x.instance_id from unnest(p_claims) x)
    order by i.instance_id for no key update;
  foreach c in array p_claims loop
    if not c.is_first and not c.begins_step then
      perform lose_attempts(array(select a.attempt_id from attempt a
        where a.key = c.key and a.state in ('reserved', 'dispatched')));
    end if;
    return query select s.outcomes[1], s.numbers[1], s.counted[1], s.outputs[1] from claim_slots(array[c], p_now,
      case when c.reserved_nano > 0 and not p_is_reserved then charge_budgets('{}', '{}', '{}', array[c], p_now) end,
      c.reserved_nano > 0, c.run_id is not null, not c.is_first) s;
  end loop;
end $$;
`;
