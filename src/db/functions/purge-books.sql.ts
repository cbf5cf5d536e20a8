/**
 * Deletes the oldest entries of the audit log, or of the ledger those that lie in none of its months, that were made
 * before a moment: so many at most. Nobody else may. It locks the rows that it deletes, in their order. It returns how
 * many.
 */
export const purgeBooks = `
create function purge_books(p_table text, p_before timestamptz, p_most int) returns int language plpgsql as $$
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
`;
