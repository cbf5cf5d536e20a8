/**
 * Books what ended attempts give back and cost, and then reserves what claims need, for all claims or for none. It locks
 * all their budgets, in the order of their key (L4). It returns null, or the tightest scope that has no room for the claims.
 */
export const chargeBudgets = `
create function charge_budgets(p_attempt_ids text[], p_back bigint[], p_spent bigint[], p_claims claim_request[],
  p_now timestamptz) returns jsonb language plpgsql as $$
declare
  v_scopes text[];
  v_windows date[];
  v_moved bigint[];
  v_spent bigint[];
  v_wanted bigint[];
begin
  select array_agg(t.scope), array_agg(t.window_start), array_agg(t.moved), array_agg(t.spent), array_agg(t.wanted)
    into v_scopes, v_windows, v_moved, v_spent, v_wanted from (
      select c.scope, c.window_start, sum(c.moved)::bigint as moved, sum(c.spent)::bigint as spent,
        sum(c.wanted)::bigint as wanted
      from (
        select s.scope, s.window_start, m.back as moved, m.spent, 0::bigint as wanted
        from unnest(p_attempt_ids, p_back, p_spent) m (attempt_id, back, spent)
        cross join lateral (select * from attempt a where a.attempt_id = m.attempt_id offset 0) a
        cross join lateral budget_scopes(a.project_id, a.capability, a.run_id,
          a.budget_window, (a.started_at at time zone 'UTC')::date) s
        union all
        select s.scope, s.window_start, 0, 0, x.reserved_nano
        from unnest(p_claims) x join project p using (project_id)
        cross join lateral budget_scopes(x.project_id, x.capability, x.run_id,
          (p_now at time zone p.timezone)::date, (p_now at time zone 'UTC')::date) s
        where x.reserved_nano > 0
      ) c group by 1, 2 order by c.scope collate "C", c.window_start) t;
  if v_scopes is null then
    return null;
  end if;
  return apply_budgets(v_scopes, v_windows, v_moved, v_spent, v_wanted, coalesce(cardinality(p_claims), 0) = 1);
end $$;
`;
