-- schema 1

-- Notes the transaction that changed an instance, which routers use to poll for changes. It takes no lock.
create or replace function touch_instance() returns trigger language plpgsql as $$
begin
  new.changed_xid := pg_current_xact_id();
  return new;
end $$;
