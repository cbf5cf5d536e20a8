-- schema 1

-- Refuses new work of a project that is being erased, whichever process writes it. It locks the project's row as its
-- foreign key does. So an erasure, which takes a stronger lock, waits for work that is being written, and later work
-- waits until the erasure is visible.
create or replace function refuse_erased() returns trigger language plpgsql as $$
declare
  v_since timestamptz;
begin
  select p.erasing_since into v_since from project p where p.project_id = new.project_id for key share;
  if v_since is not null then
    raise exception using errcode = 'CAP01', message = format('project %s is being erased', new.project_id);
  end if;
  return new;
end $$;
