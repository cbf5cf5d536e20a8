/**
 * Gives the budgets that claims are charged to, and how much each has to hold for them. It takes no lock.
 */
export const budgetDemand = `
create function budget_demand(p_claims claim_request[], p_now timestamptz)
returns table (scope text, window_start date, nano bigint) language sql stable as $$
  select s.scope, s.window_start, sum(c.reserved_nano)::bigint
  from unnest(p_claims) c join project p using (project_id)
  cross join lateral budget_scopes(c.project_id, c.capability, c.run_id,
    (p_now at time zone p.timezone)::date, (p_now at time zone 'UTC')::date) s
  where c.reserved_nano > 0 group by 1, 2
$$;
`;
