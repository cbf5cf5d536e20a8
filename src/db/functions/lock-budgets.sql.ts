/**
 * Locks what claims are charged to together with what the open attempts are charged to that they replace, which may be of
 * another day. It opens the budgets that are missing, then locks all of them, in the order of their key (L4).
 */
export const lockBudgets = `
create function lock_budgets(p_claims claim_request[], p_attempt_ids text[], p_now timestamptz)
returns void language plpgsql as $$
declare
  d record;
begin
  for d in select scope, window_start from budget_demand(p_claims, p_now) order by scope collate "C", window_start loop
    perform open_budget(d.scope, d.window_start);
  end loop;
  perform 1 from (
      select * from (
        select scope, window_start from budget_demand(p_claims, p_now)
        union select s.scope, s.window_start from attempt a
        cross join lateral budget_scopes(a.project_id, a.capability, a.run_id,
          a.budget_window, (a.started_at at time zone 'UTC')::date) s
        where a.attempt_id = any (p_attempt_ids)) u
      order by u.scope collate "C", u.window_start) m
    cross join lateral (
      select 1 from budget b where b.scope = m.scope and b.window_start = m.window_start for update) b;
end $$;
`;
