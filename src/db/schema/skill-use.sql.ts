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
