/** A schedule, and which version of it Temporal has taken. */
export const scheduleTable = `
create table schedule (
  schedule_id text primary key,
  project_id text not null references project,
  workflow_id text not null, -- its name in Temporal, which stays
  name text not null,
  body json not null, -- as it was asked for
  created_by text not null, -- the key or person
  version int not null default 1, -- grows with every change
  delivered_version int not null default 0, -- that Temporal has taken
  payload_key text not null default '', -- the id of the key by which that is encrypted there; '' = by none
  deleted_at timestamptz, -- Temporal is to forget it
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp()
);
create unique index schedule_by_name on schedule (project_id, name) where deleted_at is null; -- one of a name; listing
create index schedule_undelivered on schedule (updated_at)
  where delivered_version < version; -- maintenance: deliveries
create index schedule_by_payload_key on schedule (payload_key)
  where deleted_at is null; -- maintenance: what stands under another key
create trigger schedule_refuse_erased before insert on schedule for each row execute function refuse_erased();
`;
