/**
 * Notes the transaction that changed an instance, by which routers poll for changes. It takes no lock.
 */
export const touchInstance = `
create function touch_instance() returns trigger language plpgsql as $$
begin
  new.changed_xid := pg_current_xact_id();
  return new;
end $$;
`;
