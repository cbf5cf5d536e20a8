/** A skill that was learnt or imported, and how often it worked. */
export const skillTable = `
create table skill (
  skill_id text primary key,
  project_id text not null references project,
  job_type text not null,
  state text not null default 'active' check (state in ('active', 'retired')),
  trust text not null check (trust in ('trusted', 'candidate')),
  source text not null,
  version int not null default 1,
  content_sha256 bytea not null, -- of the current version
  base_success int not null check (base_success >= 0), -- counts it was stored with, not uses here
  base_failure int not null check (base_failure >= 0),
  success_count int not null, -- base and uses
  failure_count int not null,
  uses_at_keep int not null default 0, -- uses when somebody last looked at it; later ones may flag it
  flagged_at timestamptz,
  escalation_id text unique, -- that made it; one makes at most one
  last_used_at timestamptz not null,
  created_at timestamptz not null,
  check (success_count >= base_success and failure_count >= base_failure),
  unique (project_id, job_type, content_sha256) -- an exact duplicate; skills of a job type
);
`;
