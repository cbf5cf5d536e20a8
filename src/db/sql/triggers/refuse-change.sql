-- schema 1

-- Refuses changes of append-only tables, except by the functions that name the table in `capstan.erases` while they
-- run: `purge_books` and `erase_project`. A partition's name is that of its table, with a day. It takes no lock.
create or replace function refuse_change() returns trigger language plpgsql as $$
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
