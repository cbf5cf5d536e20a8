/** Whether money is short for what a claim would reserve: there is no room for nine more like it. It takes no lock. */
export const isTight = `
create function is_tight(p_claim claim_request, p_now timestamptz) returns boolean language sql as $$
  select p_claim.reserved_nano > 0 and exists (
    select 1 from budget_demand(array[p_claim], p_now) d
    join budget b on b.scope = d.scope and b.window_start = d.window_start
    where b.spent_nano + b.reserved_nano + 9 * p_claim.reserved_nano > b.limit_nano)
$$;
`;
