/**
 * The erasure of a project: what has been asked for, and how far it is. When it has ended, its project is known by the
 * digest of its id alone, so that whoever asks again by the id hears of it.
 */
export const erasureTable = `
create table erasure (
  pseudonym text primary key, -- what ledger and audit log call the project
  project_id text unique references project, -- null: it is gone
  project_sha256 bytea not null unique,
  requested_at timestamptz not null default clock_timestamp(),
  attempts_after text not null default '', -- attempts up to this one have been looked at
  deleted jsonb not null default '{}', -- rows and files by table
  finished_at timestamptz,
  check ((project_id is null) = (finished_at is not null))
);
`;
