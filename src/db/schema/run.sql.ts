/** A run, with what was asked of it and what Temporal has taken of that. */
export const runTable = `
create table run (
  run_id text primary key,
  project_id text not null references project,
  job_id text not null references job,
  pipeline text not null,
  version text not null,
  digest text not null references definition,
  specs jsonb not null default '{}', -- digests of the specs it was checked against, by capability
  dispatch jsonb not null default '[]', -- how its steps are carried out, by route, and why; only what it left open
  priority text not null check (priority in ('interactive', 'standard', 'batch')),
  budget_ceiling_usd numeric(24, 12),
  labels jsonb not null default '{}',
  state text not null default 'queued'
    check (state in ('queued', 'running', 'paused', 'cancelling', 'succeeded', 'failed', 'cancelled')),
  output json,
  error jsonb,
  created_at timestamptz not null default clock_timestamp(),
  start_delivered_at timestamptz, -- Temporal has taken the start
  started_at timestamptz, -- a worker has taken its first step
  finished_at timestamptz,

  control_version int not null default 0, -- grows with every pause, resume and change of the ceiling
  control_delivered int not null default 0, -- that Temporal has taken
  budget_version int not null default 0, -- control_version of the last change of the ceiling
  cancel_requested_at timestamptz,
  cancel_mode text check (cancel_mode in ('graceful', 'terminate')),
  cancel_reason text,
  cancel_delivered_at timestamptz,

  rerun_of text, -- the run that it repeats, which may have been deleted since
  parent_run_id text references run on delete cascade, -- whose step started it
  parent_step_id text,
  parent_item int,
  parent_revision int,
  parent_workflow_id text, -- that is told when the run has ended
  parent_told_at timestamptz,
  depth int not null default 0, -- runs above it
  ancestors text[], -- the runs above it, from the first one on; null: nothing started it
  schedule_id text,
  scheduled_at timestamptz,
  trace_parent text, -- its place in a trace, as traceparent says it; null: one begins with it

  concurrency_key text,
  concurrency_limit int,
  admitted_at timestamptz -- null: it waits for others with its key
);
create index run_by_digest on run (digest); -- erasure: which definitions nobody names any more
create index run_listed on run (project_id, run_id desc); -- GET /v1/runs
create index run_by_job on run (job_id); -- GET /v1/jobs/{id}
create index run_ended on run (project_id, finished_at) where finished_at is not null; -- followers of a project
create index run_open on run (project_id, run_id) where finished_at is null; -- how many a project has; maintenance: sums of runs
create index run_repeats on run (rerun_of) where rerun_of is not null; -- who needs a run that has ended
create unique index run_by_parent on run (parent_run_id, parent_step_id, parent_item, parent_revision)
  where parent_run_id is not null; -- a repeated step meets its run
create unique index run_by_schedule on run (schedule_id, scheduled_at)
  where schedule_id is not null; -- a repeated start meets its run
create index run_unadmitted on run (project_id, concurrency_key, created_at, run_id)
  where concurrency_key is not null and finished_at is null and admitted_at is null; -- which of a key is next
create index run_admitted on run (project_id, concurrency_key)
  where concurrency_key is not null and finished_at is null and admitted_at is not null; -- how many are under way
create index run_undelivered on run (created_at)
  where start_delivered_at is null and finished_at is null
    and (concurrency_key is null or admitted_at is not null); -- maintenance: starts
create index run_ended_unstarted on run (finished_at)
  where finished_at is not null and start_delivered_at is null and cancel_mode = 'terminate'
    and cancel_delivered_at is null; -- maintenance: its start may have got through all the same
create index run_cancel_undelivered on run (cancel_requested_at)
  where cancel_requested_at is not null and cancel_delivered_at is null and finished_at is null; -- maintenance
create index run_control_undelivered on run (run_id)
  where control_version > control_delivered and finished_at is null; -- maintenance: pauses, resumes, raises
create index run_untold on run (finished_at)
  where parent_workflow_id is not null and parent_told_at is null and finished_at is not null; -- maintenance: parents
create index run_with_workflow on run (start_delivered_at)
  where start_delivered_at is not null and finished_at is null; -- those that Temporal may have closed
create trigger run_refuse_erased before insert on run for each row execute function refuse_erased();
`;
