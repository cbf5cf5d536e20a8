/**
 * Gives back what claims that came to nothing had reserved. It locks their budgets, in the order of their key (L4).
 */
export const releaseBudgets = `
create function release_budgets(p_claims claim_request[], p_now timestamptz) returns void language sql as $$
  select move_budgets(array_agg(d.scope), array_agg(d.window_start), array_agg(-d.nano), array_agg(0::bigint))
  from (select * from budget_demand(p_claims, p_now) order by scope collate "C", window_start) d having count(*) > 0
$$;
`;
