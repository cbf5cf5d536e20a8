/**
 * Deletes ended attempts of a project with their choices. Paid ones of days that budgets are still compared with
 * (db/money/budget-drift.ts) stay under the pseudonym, without all that tells what they were, and what the project's
 * budgets say of them moves along: the budget of all projects does not change. It locks the attempts, then those budgets,
 * in the order of their key (L3, L4).
 */
export const eraseAttempts = `
create function erase_attempts(p_project text, p_pseudonym text, p_ids text[]) returns int language plpgsql as $$
declare
  v_scopes text[];
  v_windows date[];
  v_spent bigint[];
  v_deleted int;
begin
  perform 1 from attempt where attempt_id = any (p_ids) and project_id = p_project order by attempt_id for update; -- L3
  with moved as (
    update attempt set project_id = p_pseudonym, key = 'erased.' || attempt_id, run_id = null, step_id = null,
      item = null, instance_id = 'erased', endpoint = 'erased', error = null, cached_from = null
    where attempt_id = any (p_ids) and project_id = p_project and reserved_nano > 0 and settled_nano is not null
      and budget_window >= (now() at time zone 'UTC')::date - 4
    returning capability, budget_window, (started_at at time zone 'UTC')::date as utc_day, settled_nano
  )
  select array_agg(t.scope), array_agg(t.window_start), array_agg(t.spent) into v_scopes, v_windows, v_spent from (
    select s.scope, s.window_start, sum(x.sign * m.settled_nano)::bigint as spent
    from moved m cross join (values (p_project, -1), (p_pseudonym, 1)) x (project, sign)
    cross join lateral budget_scopes(x.project, m.capability, null, m.budget_window, m.utc_day) s
    where s.scope <> 'global' group by 1, 2 order by s.scope collate "C", s.window_start) t;
  if v_scopes is not null then
    perform move_budgets(v_scopes, v_windows, array_fill(0::bigint, array[cardinality(v_scopes)]), v_spent);
  end if;
  delete from attempt_choice where attempt_id = any (p_ids);
  delete from attempt where attempt_id = any (p_ids) and project_id = p_project;
  get diagnostics v_deleted = row_count;
  return v_deleted;
end $$;
`;
