/**
 * Adds a budget's row for its window when it is the first call of it, with the limit that holds now. It locks the row that
 * the limit is read from, for share: a limit that is being changed is waited for. Callers open budgets in the order of
 * their key, and before they lock any.
 */
export const openBudget = `
create function open_budget(p_scope text, p_window date) returns void language plpgsql as $$
declare
  v_limit bigint;
begin
  if exists (select 1 from budget b where b.scope = p_scope and b.window_start = p_window) then
    return;
  end if;
  case split_part(p_scope, ':', 1)
    when 'global' then
      select b.limit_nano into v_limit from budget b
        where b.scope = 'global' and b.window_start = '-infinity' for share;
    when 'project' then
      select nullif(p.daily_limit_nano, 0) into v_limit from project p
        where p.project_id = substr(p_scope, 9) for share;
    when 'run' then
      select ceil(r.budget_ceiling_usd * 1000000000)::bigint into v_limit from run r
        where r.run_id = substr(p_scope, 5);
    else null;
  end case;
  insert into budget (scope, window_start, limit_nano) values (p_scope, p_window, v_limit) on conflict do nothing;
end $$;
`;
