/**
 * Refuses every change of a table whose rows are only added, but what those functions do that name the table in
 * `capstan.erases` while they run: `purge_books` and `erase_project`. A part has the name of its table, and a day. It
 * takes no lock.
 */
export const refuseChange = `
create function refuse_change() returns trigger language plpgsql as $$
begin
  if tg_op <> 'TRUNCATE' and regexp_replace(tg_table_name, '_(default|[0-9]{8})$', '')
      = current_setting('capstan.erases', true) then
    if tg_op = 'DELETE' then
      return old;
    end if;
    return new;
  end if;
  raise exception '% is append-only', tg_table_name;
end $$;
`;
