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
