/**
 * Refuses new work of a project that is being erased, whoever asks and whatever they still trust. It locks the project's
 * row as its foreign key does, so that whoever begins an erasure, under a stronger lock, waits for work that is being
 * written, and work that comes then waits for the erasure to be known.
 */
export const refuseErased = `
create function refuse_erased() returns trigger language plpgsql as $$
declare
  v_since timestamptz;
begin
  select p.erasing_since into v_since from project p where p.project_id = new.project_id for key share;
  if v_since is not null then
    raise exception using errcode = 'CAP01', message = format('project %s is being erased', new.project_id);
  end if;
  return new;
end $$;
`;
