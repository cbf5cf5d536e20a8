/**
 * What the whole of a definition needs: steps that wait without taking room, runs that are paused, repeated, started by
 * a step or by the calendar, one after the other by a key; names for versions of pipelines.
 * `step.item` 0 is the step as a whole; the items of a `for_each` are 1, 2, …
 */
import type { Knex } from 'knex';

const runs = `
alter table run drop constraint run_state_check, add constraint run_state_check
  check (state in ('queued', 'running', 'paused', 'cancelling', 'succeeded', 'failed', 'cancelled'));
alter table run
  add column control_version int not null default 0, -- grows with every pause, resume and change of the ceiling
  add column control_delivered int not null default 0, -- that Temporal has taken
  add column budget_version int not null default 0, -- control_version of the last change of the ceiling
  add column cancel_mode text check (cancel_mode in ('graceful', 'terminate')),
  add column rerun_of text references run on delete set null,
  add column parent_run_id text references run on delete cascade, -- whose step started it
  add column parent_step_id text,
  add column parent_item int,
  add column parent_revision int,
  add column parent_workflow_id text, -- that is told when the run has ended
  add column parent_told_at timestamptz,
  add column depth int not null default 0, -- runs above it
  add column schedule_id text,
  add column scheduled_at timestamptz,
  add column concurrency_key text,
  add column concurrency_limit int,
  add column admitted_at timestamptz, -- its turn among those with its key has come
  add column specs jsonb not null default '{}'; -- digests of the specs it was checked against, by capability
drop index run_undelivered;
create index run_undelivered on run (created_at)
  where start_delivered_at is null and finished_at is null
    and (concurrency_key is null or admitted_at is not null); -- maintenance: starts
create index run_queued_by_key on run (project_id, concurrency_key, created_at)
  where concurrency_key is not null and finished_at is null; -- whose turn it is
create index run_control_undelivered on run (run_id)
  where control_version > control_delivered and finished_at is null; -- maintenance: pauses, resumes, raises
create unique index run_by_parent on run (parent_run_id, parent_step_id, parent_item, parent_revision)
  where parent_run_id is not null; -- a repeated step meets its run
create unique index run_by_schedule on run (schedule_id, scheduled_at)
  where schedule_id is not null; -- a repeated start meets its run
create index run_untold on run (finished_at)
  where parent_workflow_id is not null and parent_told_at is null and finished_at is not null; -- maintenance: parents
create index run_with_workflow on run (start_delivered_at)
  where start_delivered_at is not null and finished_at is null; -- those that Temporal may have closed
`;

const steps = `
alter table step drop constraint step_state_check, add constraint step_state_check check (state in ('ready', 'running',
  'retrying', 'waiting', 'in_review', 'succeeded', 'failed', 'unknown', 'skipped', 'cancelled', 'reused'));
alter table step
  add column awaiting text check (awaiting in ('review', 'budget', 'capability', 'time', 'run')),
  add column wait_since timestamptz, -- of this kind of wait
  add column wait_until timestamptz, -- null: until it is woken
  add column wake_requested_at timestamptz, -- its run is to be told that the wait is over
  add column budget_scope text, -- that has no room
  add column sub_run_id text references run on delete set null,
  add column reused_from text, -- the run that the result was taken from
  add column items int; -- of a for_each: how many
create index step_to_wake on step (run_id) where wake_requested_at is not null; -- maintenance: wakes
create index step_awaiting on step (awaiting, budget_scope)
  where awaiting in ('budget', 'capability'); -- raises; instances that appear. Not by state, which changes often
alter table event add column item int; -- null: the step as a whole
alter table review add column subject text; -- of kind budget: the scope
create unique index review_open_by_subject on review (project_id, subject)
  where kind = 'budget' and subject is not null and state in ('open', 'claimed'); -- one question per scope
create unique index review_open_by_step on review (run_id, step_id, item)
  where kind = 'step' and state in ('open', 'claimed'); -- one question per step
`;

const others = `
create table pipeline_alias (
  project_id text not null,
  pipeline text not null,
  alias text not null check (alias <> 'latest'),
  version text not null,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (project_id, pipeline, alias),
  foreign key (project_id, pipeline, version) references pipeline_version
);

create table schedule (
  schedule_id text primary key,
  project_id text not null references project,
  name text not null,
  body json not null, -- as it was asked for
  version int not null default 1, -- grows with every change
  delivered_version int not null default 0, -- that Temporal has taken
  deleted_at timestamptz, -- Temporal is to forget it
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp()
);
create unique index schedule_by_name on schedule (project_id, name) where deleted_at is null; -- one of a name; listing
create index schedule_undelivered on schedule (updated_at)
  where delivered_version < version; -- maintenance: deliveries
`;

export const completeTheEngine = {
  name: '0010-complete-the-engine',
  up: async (db: Knex): Promise<void> => {
    for (const part of [runs, steps, others]) await db.raw(part);
  },
};
