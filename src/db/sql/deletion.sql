-- schema 1

-- Deletion by age and by project: the only functions that may bypass the triggers that refuse changes and writes.

-- Deletes the oldest entries of the audit log, or those of the ledger's default partition, that were made before a
-- time, up to p_most. Nothing else may delete them. It locks the rows that it deletes, in their order. It returns how
-- many.
create or replace function purge_books(p_table text, p_before timestamptz, p_most int) returns int language plpgsql as $$
declare
  v_deleted int;
begin
  perform set_config('capstan.erases', p_table, true);
  if p_table = 'audit' then
    delete from audit where entry = any (array(
      select entry from (select entry, at from audit order by entry limit p_most) oldest where at < p_before));
  else
    delete from ledger_entry_default where (entry_id, budget_window) in (
      select entry_id, budget_window
      from (select entry_id, budget_window, at from ledger_entry_default order by entry_id limit p_most) oldest
      where at < p_before);
  end if;
  get diagnostics v_deleted = row_count;
  perform set_config('capstan.erases', '', true);
  return v_deleted;
end $$;

-- Deletes ended attempts of a project with their choices. Paid attempts of days whose budgets are still checked
-- (db/money/budget-drift.ts) stay under the pseudonym, without identifying details, and their amounts move from the
-- project's budgets to those of the pseudonym: the budget of all projects does not change. It locks the attempts, then
-- those budgets, in the order of their key (L3, L4).
create or replace function erase_attempts(p_project text, p_pseudonym text, p_ids text[]) returns int language plpgsql as $$
declare
  v_scopes text[];
  v_windows date[];
  v_spent bigint[];
  v_deleted int;
begin
  perform 1 from attempt where attempt_id = any (p_ids) and project_id = p_project order by attempt_id for update; -- L3
  with moved as (
    update attempt set project_id = p_pseudonym, key = 'erased.' || attempt_id, run_id = null, step_id = null,
      item = null, instance_id = 'erased', endpoint = 'erased', error = null, cached_from = null, scopes = null,
      budgets = null, model = null, tokens = null
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
  delete from call_content where attempt_id = any (p_ids);
  delete from callback_answer where attempt_id = any (p_ids);
  delete from attempt where attempt_id = any (p_ids) and project_id = p_project;
  get diagnostics v_deleted = row_count;
  return v_deleted;
end $$;

-- The names that the budgets of a user have in calls. It takes no lock.
create or replace function budget_names(p_user text) returns text[] language sql immutable as $$
  select array['day:' || p_user, 'month:' || p_user, 'total:' || p_user]
$$;

-- Replaces a user's id in the names of budgets. It takes no lock.
create or replace function rename_budgets(p_budgets text[], p_user text, p_pseudonym text) returns text[]
language sql immutable as $$
  select array_agg(case when b.name = any (budget_names(p_user))
    then split_part(b.name, ':', 1) || ':' || p_pseudonym else b.name end order by b.at)
  from unnest(p_budgets) with ordinality b (name, at)
$$;

-- Replaces a user's id in calls, ladders, ledger, budgets and audit log of a project by a pseudonym: amounts stay. One
-- transaction, so that sums and calls agree. It locks the attempts, then the budgets, in the order of their key (L3,
-- L4). The user's own budgets are already removed. It returns the number of calls.
create or replace function erase_user(p_project text, p_user text, p_pseudonym text) returns int language plpgsql as $$
declare
  v_ids text[];
  v_names text[] := budget_names(p_user);
  v_scopes text[] := array(select 'budget:' || p_project || ':' || n.name from unnest(budget_names(p_user)) n (name));
begin
  select array_agg(attempt_id) into v_ids from (
    select attempt_id from attempt where attempt_id in (
      select attempt_id from attempt where project_id = p_project and scopes @> array[p_user] and finished_at is not null
      union all select attempt_id from attempt where project_id = p_project and scopes @> array[p_user]
        and finished_at is null and state in ('reserved', 'dispatched'))
    order by attempt_id for update) a;
  update attempt set scopes = array_replace(scopes, p_user, p_pseudonym),
      budgets = rename_budgets(budgets, p_user, p_pseudonym)
    where attempt_id = any (v_ids);
  delete from call_content where attempt_id = any (v_ids);
  update escalation set caller = jsonb_set(caller, '{scopes}', (
      select jsonb_agg(case s when p_user then p_pseudonym else s end order by at)
      from jsonb_array_elements_text(caller -> 'scopes') with ordinality x (s, at)))
    where project_id = p_project and jsonb_exists(caller -> 'scopes', p_user);
  perform 1 from (
    select scope, window_start from budget where scope = any (v_scopes) order by scope collate "C", window_start for update) b;
  update budget set scope = 'budget:' || p_project || ':' || split_part(scope, ':', 3) || ':' || p_pseudonym
    where scope = any (v_scopes);
  perform set_config('capstan.erases', 'ledger_entry', true);
  update ledger_entry set budgets = rename_budgets(budgets, p_user, p_pseudonym)
    where project_id = p_project and budgets && v_names;
  perform set_config('capstan.erases', 'audit', true);
  update audit set subject = p_pseudonym, data = case when jsonb_exists(data, 'scope')
      then jsonb_set(data, '{scope}', to_jsonb(p_pseudonym)) else data end
    where project_id = p_project and subject = p_user;
  perform set_config('capstan.erases', '', true);
  delete from webhook_delivery d using webhook w where w.webhook_id = d.webhook_id and w.project_id = p_project
    and d.event = 'budget.reached' and d.payload #>> '{data,scope}' = p_user;
  return coalesce(cardinality(v_ids), 0);
end $$;

-- The changes of an erasure in append-only tables, in batches. The ledger keeps amounts, the audit log keeps acts and
-- their times, both under the pseudonym; versions of skills are deleted. In the audit log it examines the entries after
-- p_after, of all projects, because others may name this one. It locks the rows that it changes. It returns the
-- position of the last row for the audit log, else how many it changed; null if there are no more.
create or replace function erase_project(p_table text, p_project text, p_pseudonym text, p_keys text[], p_after bigint, p_most int)
returns bigint language plpgsql as $$
declare
  v_done bigint;
begin
  perform set_config('capstan.erases', p_table, true);
  if p_table = 'ledger_entry' then
    update ledger_entry l set project_id = p_pseudonym, budgets = null from (
      select entry_id, budget_window from ledger_entry where project_id = p_project limit p_most) o
    where l.entry_id = o.entry_id and l.budget_window = o.budget_window;
    get diagnostics v_done = row_count;
  elsif p_table = 'skill_version' then
    delete from skill_version where (skill_id, version) in (
      select v.skill_id, v.version from skill s join skill_version v using (skill_id)
      where s.project_id = p_project limit p_most);
    get diagnostics v_done = row_count;
  else
    select max(entry) into v_done from (
      select entry from audit where entry > p_after order by entry limit p_most) page;
    update audit a set project_id = case when a.project_id = p_project then p_pseudonym else a.project_id end,
      actor = case when a.actor = any (p_keys) then 'erased' else a.actor end,
      subject = case when a.project_id = p_project or a.subject = p_project or a.subject = any (p_keys)
        then 'erased' else a.subject end,
      data = case when a.project_id = p_project then '{}'
        else replace(a.data::text, p_project, p_pseudonym)::jsonb end
    where a.entry > p_after and a.entry <= v_done and (a.project_id = p_project or a.subject = p_project
      or a.actor = any (p_keys) or a.subject = any (p_keys) or strpos(a.data::text, p_project) > 0);
  end if;
  perform set_config('capstan.erases', '', true);
  return nullif(v_done, 0);
end $$;
