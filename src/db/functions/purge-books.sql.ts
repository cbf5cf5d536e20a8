/**
 * Deletes the oldest entries of the ledger, or of the audit log, that were made before a moment: so many at most. It is
 * the only one that may. It locks the rows that it deletes, in their order. It returns how many.
 */
export const purgeBooks = `
create function purge_books(p_table text, p_before timestamptz, p_most int) returns int language plpgsql as $$
declare
  v_key text := case p_table when 'ledger_entry' then 'entry_id' when 'audit' then 'entry' end;
  v_deleted int;
begin
  perform set_config('capstan.erases', p_table, true);
  execute format('delete from %1$I where %2$I = any (array(select %2$I from (select %2$I, at from %1$I order by %2$I limit $2) o
    where o.at < $1))', p_table, v_key) using p_before, p_most;
  get diagnostics v_deleted = row_count;
  perform set_config('capstan.erases', '', true);
  return v_deleted;
end $$;
`;
