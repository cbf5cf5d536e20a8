/**
 * Gives the budgets that a call is charged to: all of them and all days, the project's, the capability's, its run's and
 * those of the runs above. It takes no lock.
 */
export const budgetScopes = `
create function budget_scopes(p_project text, p_capability text, p_run text, p_day date, p_utc_day date)
returns table (scope text, window_start date) language sql stable as $$
  select s.scope, s.window_start from (values
    ('global', p_utc_day),
    ('project:' || p_project, p_day),
    ('capability:' || p_project || ':' || p_capability, p_day),
    ('run:' || p_run, '-infinity'::date)) s (scope, window_start)
  where s.scope is not null
  union all
  select 'run:' || a.run_id, '-infinity'::date from run r cross join lateral unnest(r.ancestors) a (run_id)
  where r.run_id = p_run
$$;
`;
