/**
 * Refuses every change of a table whose rows are only added. It takes no lock.
 */
export const refuseChange = `
create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name;
end $$;
`;
