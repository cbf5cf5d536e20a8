/** Corrected inputs of a step; revision 0 is the author's input and has no row. */
export const stepRevisionTable = `
create table step_revision (
  run_id text not null references run on delete cascade,
  step_id text not null,
  item int not null,
  revision int not null check (revision > 0),
  input json not null,
  source text not null,
  escalation_id text not null references escalation on delete cascade,
  transition int not null,
  choice int not null, -- 0 for the first correction of the transition
  created_at timestamptz not null default clock_timestamp(),
  primary key (run_id, step_id, item, revision),
  unique (escalation_id, transition, choice) -- a repeated transition corrects once
);
`;
