/** A ladder: its lists only grow. What it cost is read from its attempts, whose keys begin with its id. */
export const escalationTable = `
create table escalation (
  escalation_id text primary key,
  project_id text not null references project,
  job_type text not null,
  prompt text not null,
  context json,
  repo_context text not null default '',
  signals text[] not null default '{}',
  result_schema json,
  run_id text references run on delete cascade, -- null: by itself
  step_id text,
  item int,
  previous_id text, -- of the same step in the run that this one repeats
  ladder json not null, -- the machine's state without its lists
  transition int not null default 0, -- events applied to it
  escalation_level int not null check (escalation_level between 0 and 5),
  escalation_history jsonb not null default '[]' check (jsonb_typeof(escalation_history) = 'array'), -- with fingerprints of errors
  escalation_advice jsonb not null default '[]' check (jsonb_typeof(escalation_advice) = 'array'),
  model_spec jsonb not null,
  active_skills text[] not null default '{}',
  state text not null default 'running'
    check (state in ('running', 'in_review', 'succeeded', 'failed', 'cancelled')),
  result json,
  error jsonb,
  fingerprint text, -- of the first error, by which those that fail alike find each other
  leader_id text, -- whose end it waits for
  review_id text,
  skill_id text, -- that it succeeded by, or was stored as
  max_usd numeric(24, 12) check (max_usd >= 0),
  start_delivered_at timestamptz, -- Temporal has taken the start of one by itself
  created_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  check ((run_id is null) = (step_id is null) and (run_id is null) = (item is null)),
  check ((finished_at is null) = (state in ('running', 'in_review')))
);
create unique index escalation_open_by_step on escalation (run_id, step_id, item)
  where run_id is not null and state in ('running', 'in_review'); -- one open ladder of a step
create index escalation_by_step on escalation (run_id, step_id, item, escalation_id)
  where run_id is not null; -- run and step pages
create index escalation_leader on escalation (project_id, job_type, fingerprint, escalation_id)
  where state in ('running', 'in_review'); -- the first with the same failure
create index escalation_recent on escalation (project_id, job_type, escalation_id desc); -- recent errors of a job type
create index escalation_undelivered on escalation (created_at)
  where run_id is null and start_delivered_at is null and finished_at is null; -- maintenance: starts
create index escalation_with_workflow on escalation (escalation_id)
  where run_id is null and start_delivered_at is not null and finished_at is null; -- those that Temporal may have forgotten
create trigger escalation_append_only before update of escalation_history, escalation_advice on escalation
  for each row execute function refuse_shrinking();
create trigger escalation_refuse_erased before insert on escalation for each row execute function refuse_erased();
`;
