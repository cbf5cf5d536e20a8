/**
 * What an erasure changes in tables that are only added to, some rows at a time. The ledger keeps amounts, the audit log
 * keeps acts and their time, both under the pseudonym; versions of skills go. In the audit log it looks at the entries
 * after p_after, of all projects: others may name this one. It locks the rows that it changes. It returns the place of the
 * last row for the audit log, else how many it changed; null when there are no more.
 */
export const eraseProject = `
create function erase_project(p_table text, p_project text, p_pseudonym text, p_keys text[], p_after bigint, p_most int)
returns bigint language plpgsql as $$
declare
  v_done bigint;
begin
  perform set_config('capstan.erases', p_table, true);
  if p_table = 'ledger_entry' then
    update ledger_entry l set project_id = p_pseudonym from (
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
`;
