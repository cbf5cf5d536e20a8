/** Tables of skills, their versions, their uses, and the decisions that they follow. */

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

/** The texts of a skill; a version never changes. */
export const skillVersionTable = `
create table skill_version (
  skill_id text not null references skill,
  version int not null,
  repo_signals text[] not null,
  error_patterns text[] not null,
  instructions text not null,
  template text,
  author text not null, -- a key, or what made it
  at timestamptz not null default clock_timestamp(),
  primary key (skill_id, version)
);
create trigger skill_version_append_only before update or delete on skill_version
  for each row execute function refuse_change();
`;

/** One use of a version of a skill, and how it went. */
export const skillUseTable = `
create table skill_use (
  use_id bigint generated always as identity primary key,
  skill_id text not null,
  version int not null,
  escalation_id text, -- null: a call of /execute
  transition int,
  level int not null check (level between 0 and 5),
  outcome text not null check (outcome in ('success', 'failure', 'neutral')),
  at timestamptz not null default clock_timestamp(),
  foreign key (skill_id, version) references skill_version,
  unique (skill_id, escalation_id, transition) -- a repeated transition counts once
);
create index skill_use_listed on skill_use (skill_id, use_id desc); -- GET /skills/{id}/uses
`;

/** What a person decided about one proposed repair, as evidence for or against equal repairs. */
export const repairDecisionTable = `
create table repair_decision (
  decision_id text primary key, -- <review>.<round>.<proposal>
  project_id text not null references project,
  capability text not null,
  operation text not null,
  place text not null, -- in the schema's terms, without values of the input
  schema_sha256 bytea not null, -- of the schema of that place
  outcome text not null check (outcome in ('for', 'against')),
  run_id text not null, -- whose review it was; the decision outlives it
  decided_by text not null, -- a key
  decided_at timestamptz not null default clock_timestamp(),
  skill_id text references skill -- made from it and others like it
);
create index repair_decision_alike
  on repair_decision (project_id, capability, operation, place, schema_sha256); -- the evidence about a repair
create index repair_decision_by_skill on repair_decision (skill_id) where skill_id is not null; -- whom a skill follows
`;
