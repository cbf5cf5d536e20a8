/**
 * The schema as it was when migrations began. This text is frozen: what changes later is a migration of its own. The
 * texts in force, with their reasons, stand in db/sql.
 */
import type { Knex } from 'knex';

export const firstSchema = `
create function refuse_change() returns trigger language plpgsql as $$
begin
  if tg_op <> 'TRUNCATE' and regexp_replace(tg_table_name, '_(default|[0-9]{8})$', '')
      = current_setting('capstan.erases', true) then
    if tg_op = 'DELETE' then
      return old;
    end if;
    return new;
  end if;
  raise exception '% is append-only', tg_table_name;
end $$;

create function refuse_erased() returns trigger language plpgsql as $$
declare
  v_since timestamptz;
begin
  select p.erasing_since into v_since from project p where p.project_id = new.project_id for key share;
  if v_since is not null then
    raise exception using errcode = 'CAP01', message = format('project %s is being erased', new.project_id);
  end if;
  return new;
end $$;

create function refuse_shrinking() returns trigger language plpgsql as $$
begin
  if exists (select 1 from (values (old.escalation_history, new.escalation_history),
        (old.escalation_advice, new.escalation_advice)) list (was, is_now)
      cross join lateral jsonb_array_elements(list.was) with ordinality e (element, place)
      where list.is_now -> (e.place - 1)::int is distinct from e.element) then
    raise exception 'the lists of escalation % only grow', old.escalation_id;
  end if;
  return new;
end $$;

create function touch_instance() returns trigger language plpgsql as $$
begin
  new.changed_xid := pg_current_xact_id();
  return new;
end $$;

create table project (
  project_id text primary key,
  name text not null,
  timezone text not null default 'UTC',
  daily_limit_nano bigint not null default 0 check (daily_limit_nano >= 0), -- 0: none
  created_at timestamptz not null default now(),
  erasing_since timestamptz -- it takes no new work; set once, under a lock of the row (functions/refuse-erased.sql.ts)
);

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

create table api_key (
  key_id text primary key,
  name text not null,
  secret_sha256 bytea not null,
  former_sha256 bytea,
  former_until timestamptz,
  scopes text[] not null,
  projects text[] not null check (cardinality(projects) > 0),
  created_by text references api_key, -- null: a first start, or a person
  expires_at timestamptz,
  revoked_at timestamptz,
  created_at timestamptz not null default now(),
  check ((former_sha256 is null) = (former_until is null))
);
create index api_key_created_by on api_key (created_by); -- the keys below a key

create table person (
  key_id text primary key references api_key,
  issuer text not null,
  subject text not null,
  email text,
  grants jsonb not null, -- [{scopes, projects}], out of the groups of the last sign-in
  holds_every_project boolean not null,
  created_at timestamptz not null default now(),
  unique (issuer, subject) -- who signs in
);

create table session (
  secret_sha256 bytea primary key,
  session_id text not null unique, -- what people call it by
  key_id text not null references api_key,
  sign_in_sha256 bytea unique, -- the sign-in at the provider that opened it: each opens one
  provider_sid text, -- what the provider calls it
  tokens bytea, -- of the provider, sealed
  is_renewed boolean not null default false, -- it goes on while the provider renews it
  asked_at timestamptz not null default now(), -- when the provider was last asked, whatever it said
  checked_at timestamptz not null default now(), -- when the provider last said that the person may stay
  expires_at timestamptz not null,
  created_at timestamptz not null default now()
);
create index session_by_key on session (key_id, created_at desc); -- a renewed secret ends them; GET /v1/sessions
create index session_created_at on session (created_at); -- purge
create index session_due on session (asked_at) where is_renewed; -- asked of the provider again

create table login_code (
  code_sha256 bytea primary key,
  key_id text not null references api_key,
  expires_at timestamptz not null,
  created_at timestamptz not null default now()
);
create index login_code_by_key on login_code (key_id); -- a renewed secret ends them
create index login_code_created_at on login_code (created_at); -- purge

create table idempotency (
  project_id text not null references project,
  request text not null, -- method and path
  key text not null,
  body_sha256 bytea not null,
  status int not null,
  answer json not null,
  created_at timestamptz not null default now(),
  primary key (project_id, request, key)
);
create index idempotency_created_at on idempotency (created_at); -- purge after 24 h

create table capability_spec (
  name text not null,
  version text not null,
  digest text not null,
  spec json not null,
  created_at timestamptz not null default now(),
  primary key (name, version, digest)
);

create table instance (
  instance_id text primary key,
  owner_project text not null references project,
  name text not null,
  endpoint text not null,
  version text not null,
  spec_url text not null,
  health_url text not null,
  cost_type text not null check (cost_type in ('per_second', 'per_call', 'free')),
  rate_usd numeric(24, 12) not null check (rate_usd between 0 and 10000),
  cost_notes text,
  settle text not null default 'computed' check (settle in ('computed', 'reported')), -- how a success is charged
  tags text[] not null,
  max_concurrency int not null check (max_concurrency > 0),
  state text not null check (state in ('up', 'suspect', 'down', 'quarantined', 'deregistered')),
  reason text,
  down_since timestamptz, -- since when it is down or deregistered, else null
  generation int not null default 1,
  replaces boolean not null default false, -- registered over a registration that was not taken back
  queue_depth int,
  queue_depth_held int not null default 0, -- slots we held when queue_depth was reported
  queue_depth_at timestamptz,
  duration_ms double precision, -- moving average of successful calls
  deviation_ms double precision, -- moving average of |duration - average|
  mean_cost_usd double precision, -- moving average of what successful calls cost
  success_count double precision not null default 0,
  failure_count double precision not null default 0,
  spec_digest text, -- null until its /spec was read and accepted
  failed_probes int not null default 0,
  next_probe_at timestamptz, -- null: no probe wanted
  uptime_ms double precision, -- what /health said last
  uptime_at timestamptz, -- when
  breaker_until timestamptz, -- null: closed
  breaker_openings int not null default 0,
  registered_at timestamptz not null default now(),
  last_heartbeat_at timestamptz not null default now(),
  changed_xid xid8 not null default pg_current_xact_id(),
  unique (name, endpoint),
  check (cost_type <> 'free' or rate_usd = 0)
);
create index instance_changed_xid on instance (changed_xid); -- the routers' poll
create index instance_next_probe_at on instance (next_probe_at) where next_probe_at is not null; -- probing
create index instance_down_since on instance (down_since) where down_since is not null; -- purge
create index instance_owner_project on instance (owner_project); -- how many a project has
create index instance_endpoint on instance (endpoint); -- other names of an endpoint
create trigger instance_touch before update on instance for each row execute function touch_instance();

create table publisher (
  name text primary key,
  projects text[] not null check (cardinality(projects) > 0),
  set_by text, -- the operator's key; null: the first registration
  updated_at timestamptz not null default clock_timestamp()
);

create table definition (
  digest text primary key,
  body json not null,
  created_at timestamptz not null default now()
);

create table pipeline_version (
  project_id text not null references project,
  pipeline text not null,
  version text not null,
  digest text not null references definition,
  source json, -- text and content_type as it was sent; null: it was not sent as a text
  created_at timestamptz not null default now(),
  primary key (project_id, pipeline, version)
);
create index pipeline_version_latest on pipeline_version (project_id, pipeline, created_at desc); -- latest

create table pipeline_alias (
  project_id text not null,
  pipeline text not null,
  alias text not null check (alias <> 'latest'),
  version text not null,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (project_id, pipeline, alias),
  foreign key (project_id, pipeline, version) references pipeline_version
);

create table job (
  job_id text primary key,
  project_id text not null references project,
  body json not null,
  created_at timestamptz not null default now()
);
create index job_by_project on job (project_id); -- erasure
create trigger job_refuse_erased before insert on job for each row execute function refuse_erased();

create table leaving_job (
  job_id text primary key,
  project_id text not null references project
);
create index leaving_job_by_project on leaving_job (project_id); -- erasure

create table media_object (
  project_id text not null references project,
  job_id text not null references job,
  file text not null, -- one to seven segments joined by /
  size bigint not null check (size >= 0),
  sha256 bytea not null, -- of an announced one: what was promised
  etag text, -- the store's name for this state of the file; of an announced one: for what its parts have made
  content_type text not null,
  state text not null check (state in ('announced', 'stored')),
  token bytea unique, -- SHA-256 of what allows the upload; of a stored one: by which it came, if by one
  has_come boolean not null default false, -- of an announced one: a file with its digest was seen there, and counts in its place
  upload_id text, -- the store's name for an upload in parts
  created_at timestamptz not null default now(),
  check (state = 'announced' or etag is not null),
  check (state = 'stored' or token is not null)
);
create unique index media_object_stored on media_object (job_id, file) where state = 'stored';
create index media_object_by_project on media_object (project_id, state) include (size); -- quota, from the index alone
create index media_object_by_job on media_object (job_id); -- deletion of a job
create index media_object_announced on media_object (created_at) where state = 'announced'; -- sweep

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
create index run_listed on run (project_id, run_id collate "C" desc); -- GET /v1/runs; collated as attempt_by_project is
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

create table step (
  run_id text not null references run on delete cascade,
  step_id text not null,
  item int not null default 0,
  revision int not null default 0,
  state text not null check (state in ('ready', 'running', 'retrying', 'waiting', 'in_review', 'succeeded', 'failed',
    'unknown', 'skipped', 'cancelled', 'reused')),
  output json,
  error jsonb,
  started_at timestamptz,
  finished_at timestamptz,
  items int, -- of a for_each: how many
  sub_run_id text, -- in a copy, of a run that may have been deleted since
  reused_from text, -- the run that the result was taken from

  awaiting text check (awaiting in ('review', 'budget', 'capability', 'time', 'run')),
  wait_since timestamptz, -- of this kind of wait
  wait_until timestamptz, -- null: until it is woken
  wake_requested_at timestamptz, -- its run is to be told that the wait is over
  budget_scope text, -- that has no room
  awaited_capability text, -- whose appearance wakes it; null once it has, so that it may go on waiting for the same
  primary key (run_id, step_id, item)
);
create index step_to_wake on step (run_id) where wake_requested_at is not null; -- maintenance: wakes
create index step_to_wake_for on step (awaited_capability)
  where awaited_capability is not null; -- maintenance: capabilities that appear
create index step_awaiting on step (awaiting, budget_scope)
  where awaiting in ('budget', 'capability'); -- raises; instances that appear. Not by state, which changes often

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

create table attempt (
  attempt_id text primary key,
  project_id text not null,
  key text not null, -- run.step.item.revision of a step's; instances are sent a UUID made of it
  number int not null, -- 1 for the first attempt of the key
  run_id text references run on delete cascade,
  step_id text,
  item int,
  capability text not null,
  instance_id text not null,
  endpoint text not null,
  state text not null check (state in ('reserved', 'dispatched', 'settled', 'released', 'lost', 'cached')),
  token uuid not null,
  lease_until timestamptz not null,
  cost_type text not null,
  rate_usd numeric(24, 12) not null,
  reserved_nano bigint not null check (reserved_nano >= 0),
  settled_nano bigint check (settled_nano >= 0),
  budget_window date, -- the project's local day of admission; null for free calls
  certainty text check (certainty in ('exact', 'estimated')),
  ambiguity text check (ambiguity in ('not_sent', 'rejected', 'overloaded', 'ambiguous', 'answered')),
  counted boolean not null default false, -- against retry.max
  has_failed boolean not null default false, -- later attempts of the key go to other instances first
  error jsonb,
  duration_ms double precision,
  cached_from jsonb, -- of the state cached: the call whose result was taken
  saved_nano bigint, -- what that one had cost
  started_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz
);
create unique index attempt_open_by_key on attempt (key)
  where state in ('reserved', 'dispatched'); -- one open attempt per key
create index attempt_by_key on attempt (key); -- numbers and counts of a key
create index attempt_by_run on attempt (run_id, step_id, item) where run_id is not null; -- run and step pages
create index attempt_open_by_instance on attempt (instance_id, lease_until)
  where state in ('reserved', 'dispatched'); -- held slots; expired leases
create index attempt_by_escalation on attempt (key text_pattern_ops)
  where key like 'esc\\_%'; -- what an escalation cost
create index attempt_cached on attempt (project_id, started_at) include (saved_nano)
  where state = 'cached'; -- what was saved
-- Decisions and costs of a time: ids begin with it. In a collation that the primary key has not, or the planner would
-- take that for the order, and read what all others have done since a large project was last busy.
create index attempt_by_project on attempt (project_id, attempt_id collate "C");
create index attempt_paid on attempt (finished_at) where reserved_nano > 0; -- maintenance: sums of what has ended since

create table attempt_choice (
  attempt_id text primary key,
  decision json not null,
  inputs json -- to make the choice again; null: nothing was chosen
) partition by range (attempt_id);
create table attempt_choice_default partition of attempt_choice default;

create table cached_result (
  project_id text not null references project,
  key bytea not null, -- SHA-256 of what makes the call the same
  run_id text not null references run on delete cascade, -- that makes it, or has made it
  step_id text not null,
  item int not null,
  pipeline text not null,
  capability text not null,
  led_at timestamptz not null,
  attempt_id text, -- that was answered
  places json, -- of files in its input
  files json, -- what it wrote and named, with SHA-256
  stored_at timestamptz,
  expires_at timestamptz not null,
  primary key (project_id, key)
);
create index cached_result_by_run on cached_result (run_id); -- entries go with their run
create index cached_result_listed on cached_result (project_id, stored_at desc, key)
  where stored_at is not null; -- GET /v1/cache
create index cached_result_expired on cached_result (expires_at); -- purge

create table event (
  id bigint generated by default as identity,
  run_id text not null references run on delete cascade,
  xid xid8 not null default pg_current_xact_id(),
  at timestamptz not null default clock_timestamp(),
  type text not null,
  step_id text,
  item int, -- null: the step as a whole
  attempt int,
  data jsonb not null default '{}',
  primary key (run_id, xid, id)
) partition by range (run_id);
create table event_default partition of event default;

create table ledger_entry (
  entry_id bigint generated always as identity,
  attempt_id text not null,
  kind text not null check (kind in ('reserve', 'settle', 'release', 'adjust')),
  seq int not null default 0,
  project_id text not null,
  capability text not null,
  amount_nano bigint not null,
  certainty text not null check (certainty in ('exact', 'estimated')),
  budget_window date not null, -- the project's local date of admission
  at timestamptz not null default clock_timestamp(),
  primary key (entry_id, budget_window),
  unique (attempt_id, kind, seq, budget_window)
) partition by range (budget_window);
create table ledger_entry_default partition of ledger_entry default;
create index ledger_entry_listed on ledger_entry (project_id, budget_window desc, entry_id desc); -- GET /v1/ledger
create trigger ledger_entry_append_only before update or delete on ledger_entry
  for each row execute function refuse_change();

create table budget (
  scope text collate "C" not null,
  window_start date not null,
  limit_nano bigint check (limit_nano >= 0), -- null: none
  reserved_nano bigint not null default 0 check (reserved_nano >= 0),
  spent_nano bigint not null default 0 check (spent_nano >= 0),
  reached_50_at timestamptz,
  reached_80_at timestamptz,
  reached_100_at timestamptz, -- or a call was refused
  announced int not null default 0, -- the highest mark that was logged
  primary key (scope, window_start)
);
create index budget_unannounced on budget (announced)
  where (reached_50_at is not null and announced < 50) or (reached_80_at is not null and announced < 80)
    or (reached_100_at is not null and announced < 100); -- maintenance: marks
create index budget_by_day on budget (window_start) where window_start > '-infinity'; -- maintenance: sums of days
insert into budget (scope, window_start) values ('global', '-infinity');

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

create table review (
  review_id text primary key,
  project_id text not null references project,
  kind text not null check (kind in ('escalation', 'skill', 'budget', 'ops', 'step')),
  reason text not null,
  state text not null default 'open'
    check (state in ('open', 'claimed', 'resolved', 'expired', 'cancelled')),
  run_id text references run on delete cascade,
  step_id text,
  item int,
  escalation_id text,
  skill_id text references skill,
  subject text, -- of kind budget: the scope, but for a ladder's own limit
  assignee text,
  claim_expires_at timestamptz,
  due_at timestamptz not null,
  payload json not null,
  decision json,
  decided_by text,
  decided_at timestamptz,
  version int not null default 1,
  round int not null default 1,
  delivered_at timestamptz, -- whoever waits has learnt how it ended
  created_at timestamptz not null default clock_timestamp(),
  check (state <> 'claimed' or (assignee is not null and claim_expires_at is not null)),
  check (state <> 'resolved' or (decision is not null and decided_by is not null)),
  check ((decided_at is null) = (state in ('open', 'claimed')))
);
create unique index review_open_by_escalation on review (escalation_id)
  where escalation_id is not null and state in ('open', 'claimed'); -- one question at a time
create unique index review_open_by_skill on review (skill_id)
  where kind = 'skill' and state in ('open', 'claimed'); -- likewise
create index review_listed on review (project_id, review_id desc); -- GET /v1/reviews
create index review_waiting on review (project_id, review_id desc)
  where state in ('open', 'claimed'); -- the same, of those that wait
create index review_due_first on review (project_id, due_at, review_id)
  where state in ('open', 'claimed'); -- the same, in the order in which they are due
create index review_by_run on review (run_id) where run_id is not null; -- a run's page; its end
create index review_due on review (due_at) where state in ('open', 'claimed'); -- maintenance: expiry
create index review_undelivered on review (decided_at)
  where state in ('resolved', 'expired') and delivered_at is null; -- maintenance: deliveries
create unique index review_open_by_subject on review (project_id, subject)
  where kind = 'budget' and subject is not null and escalation_id is null
    and state in ('open', 'claimed'); -- one question per scope; a ladder asks its own
create unique index review_open_by_step on review (run_id, step_id, item)
  where kind = 'step' and state in ('open', 'claimed'); -- one question per step

create table advice_answer (
  project_id text not null references project,
  request_sha256 bytea not null,
  answer json not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (project_id, request_sha256)
);
create index advice_answer_created_at on advice_answer (created_at); -- purge

create table audit (
  entry bigint generated always as identity primary key,
  project_id text, -- null: of no project
  at timestamptz not null default clock_timestamp(),
  actor text not null, -- a key, or a part of Capstan
  action text not null,
  subject text not null,
  data jsonb not null default '{}'
);
create index audit_listed on audit (project_id, entry desc); -- GET /v1/audit
create index audit_by_subject on audit (project_id, subject, entry desc); -- the same, of one thing
create trigger audit_append_only before update or delete on audit
  for each row execute function refuse_change();
create trigger audit_keep before truncate on audit for each statement execute function refuse_change();

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

create table webhook (
  webhook_id text primary key,
  project_id text not null references project,
  url text not null,
  events text[] not null check (cardinality(events) > 0),
  secret text not null,
  created_by text not null,
  created_at timestamptz not null default clock_timestamp(),
  looked_at timestamptz not null default clock_timestamp() -- what happened before has been found
);
create index webhook_listed on webhook (project_id, webhook_id); -- GET /v1/webhooks

create table webhook_delivery (
  delivery_id text primary key,
  webhook_id text not null references webhook on delete cascade,
  event text not null,
  subject text not null, -- what happened: told once
  payload json not null,
  state text not null default 'pending' check (state in ('pending', 'delivered', 'failed')),
  attempts int not null default 0,
  status int,
  error text,
  next_try_at timestamptz default clock_timestamp(), -- null: it has ended
  created_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  unique (webhook_id, event, subject),
  check ((state = 'pending') = (finished_at is null) and (state = 'pending') = (next_try_at is not null))
);
create index webhook_delivery_due on webhook_delivery (webhook_id, next_try_at)
  where state = 'pending'; -- maintenance: some of each webhook
create index webhook_delivery_listed on webhook_delivery (webhook_id, created_at desc, delivery_id desc); -- its log
create index webhook_delivery_created_at on webhook_delivery (created_at); -- purge

create table schema_floor (
  migration int not null,
  is_only boolean primary key default true check (is_only) -- one row
);
insert into schema_floor (migration) values (1);

create table cluster (
  written_by xid8 not null default pg_current_xact_id(), -- the transaction that wrote this row, as long as nobody has copied it
  is_only boolean primary key default true check (is_only) -- one row
);

create type claim_request as (
  attempt_id text, token uuid, key text, is_first boolean, begins_step boolean, known_failures text[], project_id text,
  run_id text, step_id text, item int, revision int,
  capability text, instance_id text, must_be_idle boolean, is_prefetch boolean, cost_type text, rate_usd numeric,
  lease_ms int, reserved_nano bigint, decision json, inputs json
);
create type attempt_end as (
  attempt_id text, token uuid, state text, ambiguity text, counted boolean, has_failed boolean,
  settled_nano bigint, certainty text, duration_ms double precision, error jsonb,
  run_id text, step_id text, item int, step_state text, event_data jsonb, keeps json
);

create function day_start(p_day date, p_zone text) returns timestamptz language sql stable as $$
  select m.midnight - case when ((m.midnight - interval '1 hour') at time zone p_zone)::date = p_day
    then interval '1 hour' else interval '0' end
  from (select p_day::timestamp at time zone p_zone) m (midnight)
$$;

create function with_runs_below(p_run_id text) returns text[] language sql stable as $$
  with recursive below as (
    select p_run_id as run_id
    union all
    select r.run_id from below b join run r on r.parent_run_id = b.run_id
  )
  select array_agg(run_id) from below
$$;

create function cost_below(p_run_id text, p_step_id text, p_item int) returns bigint language sql stable as $$
  with recursive below as (
    select r.run_id from run r
    where r.parent_run_id = p_run_id and r.parent_step_id = p_step_id and p_item in (0, r.parent_item)
    union all
    select r.run_id from below b join run r on r.parent_run_id = b.run_id
  )
  select coalesce(sum(a.settled_nano), 0)::bigint from below join attempt a using (run_id)
$$;

create function stop_children(p_run_id text, p_mode text, p_reason text) returns int language plpgsql as $$
declare
  v_asked int;
begin
  with asked as (
    update run set state = 'cancelling', cancel_requested_at = clock_timestamp(), cancel_delivered_at = null,
      cancel_mode = p_mode, cancel_reason = p_reason
    where parent_run_id = p_run_id and (state in ('queued', 'running', 'paused')
      or state = 'cancelling' and p_mode = 'terminate' and cancel_mode is distinct from 'terminate')
    returning run_id
  ), logged as (
    insert into event (run_id, type, data)
    select run_id, 'run.cancelling', jsonb_build_object('reason', p_reason, 'mode', p_mode) from asked
  )
  select count(*) into v_asked from asked;
  return v_asked;
end $$;

create function budget_scopes(p_project text, p_capability text, p_run text, p_day date, p_utc_day date)
returns table (scope text, window_start date) language sql stable as $$
  select s.scope, s.window_start from (values
    ('global', p_utc_day),
    ('project:' || p_project, p_day),
    ('capability:' || p_project || ':' || p_capability, p_day),
    ('run:' || p_run, '-infinity'::date)) s (scope, window_start)
  where s.scope is not null
  union all
  select 'run:' || a.run_id, '-infinity'::date from run r cross join lateral unnest(r.ancestors) a (run_id)
  where r.run_id = p_run
$$;

create function budget_demand(p_claims claim_request[], p_now timestamptz)
returns table (scope text, window_start date, nano bigint) language sql stable as $$
  select s.scope, s.window_start, sum(c.reserved_nano)::bigint
  from unnest(p_claims) c join project p using (project_id)
  cross join lateral budget_scopes(c.project_id, c.capability, c.run_id,
    (p_now at time zone p.timezone)::date, (p_now at time zone 'UTC')::date) s
  where c.reserved_nano > 0 group by 1, 2
$$;

create function is_tight(p_claim claim_request, p_now timestamptz) returns boolean language sql as $$
  select p_claim.reserved_nano > 0 and exists (
    select 1 from budget_demand(array[p_claim], p_now) d
    join budget b on b.scope = d.scope and b.window_start = d.window_start
    where b.spent_nano + b.reserved_nano + 9 * p_claim.reserved_nano > b.limit_nano)
$$;

create function open_budget(p_scope text, p_window date) returns void language plpgsql as $$
declare
  v_limit bigint;
begin
  if exists (select 1 from budget b where b.scope = p_scope and b.window_start = p_window) then
    return;
  end if;
  case split_part(p_scope, ':', 1)
    when 'global' then
      select b.limit_nano into v_limit from budget b
        where b.scope = 'global' and b.window_start = '-infinity' for share;
    when 'project' then
      select nullif(p.daily_limit_nano, 0) into v_limit from project p
        where p.project_id = substr(p_scope, 9) for share;
    when 'run' then
      select ceil(r.budget_ceiling_usd * 1000000000)::bigint into v_limit from run r
        where r.run_id = substr(p_scope, 5);
    else null;
  end case;
  insert into budget (scope, window_start, limit_nano) values (p_scope, p_window, v_limit) on conflict do nothing;
end $$;

create function apply_budgets(p_scopes text[], p_windows date[], p_moved bigint[], p_spent bigint[],
  p_wanted bigint[], p_is_lone boolean) returns jsonb language plpgsql as $$
declare
  v_now timestamptz := clock_timestamp();
  v_known int;
  v_refusal jsonb;
begin
  select count(*) into v_known from unnest(p_scopes, p_windows) m (scope, window_start)
    where exists (select 1 from budget b where b.scope = m.scope and b.window_start = m.window_start offset 0);
  if v_known < cardinality(p_scopes) then -- before any is locked, in their order
    perform open_budget(m.scope, m.window_start) from (
      select * from unnest(p_scopes, p_windows) m (scope, window_start)
      order by scope collate "C", window_start) m;
  end if;
  with locked as materialized (
    select b.scope, b.window_start, b.limit_nano, b.spent_nano + m.spent as spent, b.reserved_nano + m.moved as reserved,
      b.reached_50_at, b.reached_80_at, b.reached_100_at, m.wanted, m.moved <> 0 or m.spent <> 0 as is_moved
    from (
      select * from unnest(p_scopes, p_windows, p_moved, p_spent, p_wanted) m (scope, window_start, moved, spent, wanted)
      order by m.scope collate "C", m.window_start) m
    cross join lateral (
      select * from budget b where b.scope = m.scope and b.window_start = m.window_start for update) b
  ), refused as materialized (
    select l.* from locked l where l.wanted > 0 and l.spent + l.reserved + l.wanted > l.limit_nano
    order by l.limit_nano - l.spent - l.reserved limit 1
  ), changed as (
    update budget b set spent_nano = l.spent,
      reserved_nano = l.reserved + case when r.scope is null then l.wanted else 0 end,
      reached_50_at = coalesce(l.reached_50_at, case when l.spent >= l.limit_nano * 0.5 then v_now end),
      reached_80_at = coalesce(l.reached_80_at, case when l.spent >= l.limit_nano * 0.8 then v_now end),
      reached_100_at = coalesce(l.reached_100_at, case when l.spent >= l.limit_nano
        or (p_is_lone and r.scope is not null and l.spent + l.wanted > l.limit_nano) then v_now end)
    from locked l left join refused r on true
    where b.scope = l.scope and b.window_start = l.window_start and b.scope = any (p_scopes)
      and b.window_start = any (p_windows) and (l.is_moved or r.scope is null or p_is_lone)
  )
  select jsonb_build_object('scope', split_part(r.scope, ':', 1),
      'run_id', case when r.scope like 'run:%' then substr(r.scope, 5) end, 'limit_nano', r.limit_nano::text,
      'spent_nano', r.spent::text, 'reserved_nano', r.reserved::text,
      'resets_at', case when r.window_start <> '-infinity' then day_start(r.window_start + 1, coalesce(
        (select timezone from project where 'project:' || project_id = r.scope), 'UTC')) end)
    into v_refusal from refused r;

  if p_scopes[cardinality(p_scopes)] like 'run:%' then -- in their order, runs are last
    insert into event (run_id, type, data)
    select substr(b.scope, 5), 'run.budget_reached', jsonb_build_object('percent', mark.percent,
        'limit_usd', b.limit_nano / 1000000000.0, 'spent_usd', b.spent_nano / 1000000000.0)
      || case when mark.percent = 100 and v_refusal is not null
        then jsonb_build_object('refused_usd', m.wanted / 1000000000.0) else '{}' end
    from unnest(p_scopes, p_windows, p_wanted) m (scope, window_start, wanted)
    cross join lateral (
      select * from budget b where b.scope = m.scope and b.window_start = m.window_start offset 0) b
    cross join lateral (values (50, b.reached_50_at), (80, b.reached_80_at), (100, b.reached_100_at)) mark (percent, at)
    where m.scope like 'run:%' and mark.at = v_now order by b.scope, mark.percent;
  end if;
  return v_refusal;
end $$;

create function move_budgets(p_scopes text[], p_windows date[], p_reserved bigint[], p_spent bigint[])
returns void language plpgsql as $$
begin
  perform apply_budgets(p_scopes, p_windows, p_reserved, p_spent, array_fill(0::bigint, array[cardinality(p_scopes)]),
    false);
end $$;

create function charge_budgets(p_attempt_ids text[], p_back bigint[], p_spent bigint[], p_claims claim_request[],
  p_now timestamptz) returns jsonb language plpgsql as $$
declare
  v_scopes text[];
  v_windows date[];
  v_moved bigint[];
  v_spent bigint[];
  v_wanted bigint[];
begin
  select array_agg(t.scope), array_agg(t.window_start), array_agg(t.moved), array_agg(t.spent), array_agg(t.wanted)
    into v_scopes, v_windows, v_moved, v_spent, v_wanted from (
      select c.scope, c.window_start, sum(c.moved)::bigint as moved, sum(c.spent)::bigint as spent,
        sum(c.wanted)::bigint as wanted
      from (
        select s.scope, s.window_start, m.back as moved, m.spent, 0::bigint as wanted
        from unnest(p_attempt_ids, p_back, p_spent) m (attempt_id, back, spent)
        cross join lateral (select * from attempt a where a.attempt_id = m.attempt_id offset 0) a
        cross join lateral budget_scopes(a.project_id, a.capability, a.run_id,
          a.budget_window, (a.started_at at time zone 'UTC')::date) s
        union all
        select s.scope, s.window_start, 0, 0, x.reserved_nano
        from unnest(p_claims) x join project p using (project_id)
        cross join lateral budget_scopes(x.project_id, x.capability, x.run_id,
          (p_now at time zone p.timezone)::date, (p_now at time zone 'UTC')::date) s
        where x.reserved_nano > 0
      ) c group by 1, 2 order by c.scope collate "C", c.window_start) t;
  if v_scopes is null then
    return null;
  end if;
  return apply_budgets(v_scopes, v_windows, v_moved, v_spent, v_wanted, coalesce(cardinality(p_claims), 0) = 1);
end $$;

create function release_budgets(p_claims claim_request[], p_now timestamptz) returns void language sql as $$
  select move_budgets(array_agg(d.scope), array_agg(d.window_start), array_agg(-d.nano), array_agg(0::bigint))
  from (select * from budget_demand(p_claims, p_now) order by scope collate "C", window_start) d having count(*) > 0
$$;

create function lock_budgets(p_claims claim_request[], p_attempt_ids text[], p_now timestamptz)
returns void language plpgsql as $$
declare
  d record;
begin
  for d in select scope, window_start from budget_demand(p_claims, p_now) order by scope collate "C", window_start loop
    perform open_budget(d.scope, d.window_start);
  end loop;
  perform 1 from (
      select * from (
        select scope, window_start from budget_demand(p_claims, p_now)
        union select s.scope, s.window_start from attempt a
        cross join lateral budget_scopes(a.project_id, a.capability, a.run_id,
          a.budget_window, (a.started_at at time zone 'UTC')::date) s
        where a.attempt_id = any (p_attempt_ids)) u
      order by u.scope collate "C", u.window_start) m
    cross join lateral (
      select 1 from budget b where b.scope = m.scope and b.window_start = m.window_start for update) b;
end $$;

create function lose_attempts(p_attempt_ids text[]) returns int language plpgsql as $$
declare
  v_ids text[];
  v_held bigint[];
begin
  with lost as (
    update attempt set state = 'lost', ambiguity = 'ambiguous', counted = true, has_failed = true,
      settled_nano = reserved_nano, certainty = 'estimated', finished_at = clock_timestamp(),
      duration_ms = extract(epoch from clock_timestamp() - started_at) * 1000,
      error = jsonb_build_object('code', 'contact_lost', 'message', 'the process that made the call went away')
    where attempt_id = any (p_attempt_ids) and state in ('reserved', 'dispatched')
    returning *
  ), booked as (
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window)
    select attempt_id, 'settle', project_id, capability, settled_nano, 'estimated', budget_window
    from lost where reserved_nano > 0
  )
  select array_agg(attempt_id), array_agg(reserved_nano) into v_ids, v_held from lost;
  perform charge_budgets(m.ids, m.back, m.held, '{}', clock_timestamp()) from (
    select array_agg(id) as ids, array_agg(-held) as back, array_agg(held) as held
    from unnest(v_ids, v_held) t (id, held) where held > 0) m where m.ids is not null;
  return coalesce(cardinality(v_ids), 0);
end $$;

create function settle_ends(p_ends attempt_end[], p_outputs json[], p_has_steps boolean,
  out outcomes text[], out charged text[], out back bigint[], out spent bigint[]) language plpgsql as $$
declare
  v_ended text[];
  v_changed int;
begin
  with ending as (
    select e.*, a.state as was, a.reserved_nano, a.project_id, a.capability, a.budget_window,
      e.settled_nano - case when a.state = 'lost' then a.settled_nano else 0 end as cost
    from (select * from unnest(p_ends) e order by e.attempt_id) e
    cross join lateral (
      select a.* from attempt a where a.attempt_id = e.attempt_id and a.token = e.token
        and case a.state when 'reserved' then true when 'dispatched' then true
          when 'lost' then a.certainty = 'estimated' and e.certainty = 'exact' and a.reserved_nano > 0 end
      for update) a
  ), ended as (
    update attempt a set settled_nano = e.settled_nano, certainty = e.certainty,
      state = case when e.was = 'lost' then a.state else e.state end,
      ambiguity = case when e.was = 'lost' then a.ambiguity else e.ambiguity end,
      counted = case when e.was = 'lost' then a.counted else e.counted end,
      has_failed = a.has_failed or e.has_failed,
      duration_ms = case when e.was = 'lost' then a.duration_ms else e.duration_ms end,
      error = case when e.was = 'lost' then a.error else e.error end,
      finished_at = case when e.was = 'lost' then a.finished_at else clock_timestamp() end
    from ending e where a.attempt_id = e.attempt_id and a.attempt_id = any (array(select x.attempt_id from unnest(p_ends) x))
  ), booked as (
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window)
    select e.attempt_id,
      case when e.was = 'lost' then 'adjust' when e.state = 'released' then 'release' else 'settle' end,
      e.project_id, e.capability, e.cost, coalesce(e.certainty, 'exact'), e.budget_window
    from ending e where e.reserved_nano > 0
  )
  select array_agg(e.attempt_id) filter (where e.was <> 'lost'),
      array_agg(e.attempt_id) filter (where e.reserved_nano > 0),
      array_agg(case when e.was = 'lost' then 0 else -e.reserved_nano end) filter (where e.reserved_nano > 0),
      array_agg(e.cost) filter (where e.reserved_nano > 0), count(*)
    into v_ended, charged, back, spent, v_changed from ending e;

  if p_has_steps then
    with ending as (
      select e.*, e.unnest as output, a.number
      from rows from (unnest(p_ends), unnest(p_outputs)) e
      cross join lateral (select a.number from attempt a where a.attempt_id = e.attempt_id offset 0) a
      where e.attempt_id = any (v_ended)
    ), stepped as (
      update step s set state = e.step_state, output = case when e.step_state = 'succeeded' then e.output end,
          error = case when e.step_state = 'succeeded' then null else e.error end,
          finished_at = case when e.step_state = 'retrying' then null else clock_timestamp() end
        from ending e
        where s.run_id = e.run_id and s.step_id = e.step_id and s.item = e.item and s.state in ('running', 'retrying')
          and s.run_id = any (array(select x.run_id from unnest(p_ends) x))
          and s.step_id = any (array(select x.step_id from unnest(p_ends) x))
          and s.item = any (array(select x.item from unnest(p_ends) x))
      returning s.run_id, e.step_state, s.step_id, s.item, e.number, e.event_data
    )
    insert into event (run_id, type, step_id, item, attempt, data)
    select run_id, 'step.' || case step_state when 'unknown' then 'failed' else step_state end, step_id,
      nullif(item, 0), number, event_data from stepped;
  end if;
  if cardinality(v_ended) = cardinality(p_ends) then
    outcomes := array_fill('settled'::text, array[v_changed]);
    return;
  end if;
  outcomes := array(
    select case when (a.state, a.duration_ms, a.settled_nano) = (e.state, e.duration_ms, e.settled_nano)
      then 'settled' else 'superseded' end
    from unnest(p_ends) with ordinality e
    left join lateral (select a.* from attempt a where a.attempt_id = e.attempt_id and a.token = e.token offset 0) a on true
    order by e.ordinality);
end $$;

create function keep_answers(p_ends attempt_end[], p_outputs json[]) returns void language sql as $$
  with held as (
    select i.project_id, i.request, i.key, (e.keeps ->> 'status')::int as status, o.output
    from unnest(p_ends) with ordinality e
    join unnest(p_outputs) with ordinality o (output, ordinality) using (ordinality)
    join idempotency i on i.project_id = e.keeps ->> 'project_id' and i.request = e.keeps ->> 'request'
      and i.key = e.keeps ->> 'key' and i.status = 0 and i.answer #>> '{}' = e.keeps ->> 'holder'
    where e.keeps is not null order by i.project_id, i.request, i.key for update of i
  )
  update idempotency i set status = h.status, answer = h.output, created_at = clock_timestamp()
  from held h where i.project_id = h.project_id and i.request = h.request and i.key = h.key
$$;

create function begin_steps(p_claims claim_request[], p_outcomes text[], p_numbers int[], p_endpoints text[])
returns void language plpgsql as $$
begin
  with claimed as (
    select c.*, s.run_id is null as is_new, s.started_at is null as begins
    from unnest(p_claims) with ordinality c
    left join lateral (
      select s.run_id, s.started_at from step s
      where s.run_id = c.run_id and s.step_id = c.step_id and s.item = c.item offset 0) s on true
    where c.step_id is not null and p_outcomes[c.ordinality] = 'claimed'
  ), begun as (
    insert into step (run_id, step_id, item, revision, state, started_at)
    select c.run_id, c.step_id, c.item, c.revision, 'running', clock_timestamp() from claimed c where c.is_new
  ), resumed as (
    update step s set state = 'running', revision = c.revision, started_at = coalesce(s.started_at, clock_timestamp()),
      awaiting = null, wait_since = null, wait_until = null, wake_requested_at = null, budget_scope = null,
      awaited_capability = null
    from claimed c
    where not c.is_new and s.run_id = c.run_id and s.step_id = c.step_id and s.item = c.item
      and s.run_id = any (array(select x.run_id from unnest(p_claims) x))
      and s.step_id = any (array(select x.step_id from unnest(p_claims) x))
      and s.item = any (array(select x.item from unnest(p_claims) x))
  )
  insert into event (run_id, type, step_id, item, attempt, data)
  select c.run_id, 'step.' || told.what, c.step_id, nullif(c.item, 0),
    case told.what when 'routed' then p_numbers[c.ordinality] end,
    case told.what when 'routed' then jsonb_build_object('attempt_id', c.attempt_id,
      'endpoint', p_endpoints[c.ordinality], 'reason', c.decision -> 'reason') else '{}' end
  from claimed c
  cross join lateral (values (1, 'started'), (2, 'routed')) told (at, what)
  where c.begins or told.what = 'routed' order by c.ordinality, told.at;
end $$;

create function failures_of(p_key text) returns json language sql stable as $$
  select json_object_agg(f.instance_id, f.counted) from (
    select a.instance_id, count(*) filter (where a.counted) as counted
    from attempt a where a.key = p_key and a.has_failed group by a.instance_id) f
$$;

create function claim_slots(p_claims claim_request[], p_now timestamptz, p_refusal jsonb, p_is_paid boolean,
  p_has_steps boolean, p_has_earlier boolean,
  out outcomes text[], out numbers int[], out counted int[], out outputs json[]) language plpgsql as $$
declare
  v_ended text[]; -- by the step, the whole of it or its run: answered, closed; else failed_before or null
  v_made int[];
  v_has_news boolean[]; -- instances have failed the key that the claim does not know of
  v_endpoints text[];
  v_held int;
  v_instances text[];
  v_instance text;
  i record;
  c claim_request;
  at int;
begin
  if p_has_steps then
    select array_agg(case when s.state = 'succeeded' then 'answered'
          when s.state in ('failed', 'unknown', 'skipped', 'cancelled') then 'closed'
          when x.item > 0 and (select w.finished_at from step w
            where w.run_id = x.run_id and w.step_id = x.step_id and w.item = 0) is not null then 'closed'
          when x.begins_step and s.run_id is not null then 'closed'
          when s.run_id is null and (select r.finished_at from run r where r.run_id = x.run_id) is not null
            then 'closed' end order by x.ordinality),
        array_agg(case s.state when 'succeeded' then s.output end order by x.ordinality)
      into v_ended, outputs
      from unnest(p_claims) with ordinality x
      left join lateral (
        select s.* from step s where s.run_id = x.run_id and s.step_id = x.step_id and s.item = x.item offset 0) s on true;
  end if;
  if p_has_earlier then
    select array_agg(e.made order by x.ordinality), array_agg(e.counted order by x.ordinality),
        array_agg(e.has_news order by x.ordinality)
      into v_made, counted, v_has_news
      from unnest(p_claims) with ordinality x
      left join lateral (select count(*)::int as made, (count(*) filter (where a.counted))::int as counted,
          bool_or(a.has_failed and a.instance_id <> all (x.known_failures)) as has_news
        from attempt a where a.key = x.key and not x.is_first) e on true;
    if true = any (v_has_news) then
      outputs := coalesce(outputs, array_fill(null::json, array[cardinality(p_claims)]));
      for n in 1 .. cardinality(p_claims) loop
        if v_has_news[n] and v_ended[n] is null then
          v_ended[n] := 'failed_before';
          outputs[n] := failures_of(p_claims[n].key);
        end if;
      end loop;
    end if;
  end if;

  if cardinality(p_claims) = 1 then
    v_instances := array[p_claims[1].instance_id];
  else
    v_instances := array(select distinct x.instance_id from unnest(p_claims) x order by 1);
  end if;
  foreach v_instance in array v_instances loop
    select x.endpoint, x.state, x.breaker_until, x.cost_type, x.rate_usd, x.max_concurrency into i
      from instance x where x.instance_id = v_instance for no key update;
    continue when not found;
    select count(*) into v_held from attempt a where a.instance_id = v_instance
      and a.state in ('reserved', 'dispatched');
    at := 0;
    foreach c in array p_claims loop
      at := at + 1;
      if c.instance_id <> v_instance then
        continue;
      elsif v_ended[at] is not null then
        outcomes[at] := v_ended[at];
      elsif p_refusal is not null and c.reserved_nano > 0 then
        outcomes[at] := 'over_budget';
        outputs[at] := p_refusal::json;
      elsif i.state not in ('up', 'suspect') or i.breaker_until > clock_timestamp()
          or i.cost_type <> c.cost_type or i.rate_usd <> c.rate_usd then
        outcomes[at] := 'gone';
      elsif v_held >= i.max_concurrency or (c.must_be_idle and v_held > 0) or (c.is_prefetch and is_tight(c, p_now)) then
        outcomes[at] := 'full';
      else
        outcomes[at] := 'claimed';
        v_endpoints[at] := i.endpoint;
        v_held := v_held + 1;
        if i.breaker_until is not null then -- the one trial of this window
          i.breaker_until := clock_timestamp() + c.lease_ms * interval '1 millisecond';
          update instance x set breaker_until = i.breaker_until where x.instance_id = v_instance;
        end if;
      end if;
    end loop;
  end loop;

  with chosen as (
    insert into attempt_choice (attempt_id, decision, inputs)
    select x.attempt_id, x.decision, x.inputs from unnest(p_claims) with ordinality x
    where outcomes[x.ordinality] = 'claimed'
  )
  insert into attempt (attempt_id, project_id, key, number, run_id, step_id, item, capability, instance_id,
    endpoint, state, token, lease_until, cost_type, rate_usd, reserved_nano, started_at, budget_window)
  select x.attempt_id, x.project_id, x.key, coalesce(v_made[x.ordinality], 0) + 1, x.run_id, x.step_id, x.item,
    x.capability, x.instance_id, v_endpoints[x.ordinality], 'dispatched', x.token,
    clock_timestamp() + x.lease_ms * interval '1 millisecond', x.cost_type, x.rate_usd, x.reserved_nano,
    p_now, case when x.reserved_nano > 0
      then (select (p_now at time zone p.timezone)::date from project p where p.project_id = x.project_id) end
  from unnest(p_claims) with ordinality x where outcomes[x.ordinality] = 'claimed';

  if p_is_paid then
    insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window)
    select x.attempt_id, 'reserve', x.project_id, x.capability, x.reserved_nano, 'exact',
      (select (p_now at time zone p.timezone)::date from project p where p.project_id = x.project_id)
    from unnest(p_claims) with ordinality x where x.reserved_nano > 0 and outcomes[x.ordinality] = 'claimed';
  end if;
  for at in 1 .. cardinality(p_claims) loop
    outcomes[at] := coalesce(outcomes[at], v_ended[at], 'gone');
    numbers[at] := case outcomes[at] when 'claimed' then coalesce(v_made[at], 0) + 1 else 0 end;
    counted[at] := case outcomes[at] when 'claimed' then coalesce(counted[at], 0) else 0 end;
  end loop;
  if p_is_paid and p_refusal is null and 'claimed' <> any (outcomes) then
    perform release_budgets((select array_agg(p_claims[n]) from generate_subscripts(p_claims, 1) n
      where outcomes[n] <> 'claimed'), p_now);
  end if;
  if p_has_steps then
    perform begin_steps(p_claims, outcomes, numbers, v_endpoints);
  end if;
end $$;

create function claim_one_by_one(p_claims claim_request[], p_now timestamptz, p_is_reserved boolean)
returns table (outcome text, number int, counted int, output json) language plpgsql as $$
declare
  c claim_request;
begin
  perform 1 from instance i where i.instance_id in (select x.instance_id from unnest(p_claims) x)
    order by i.instance_id for no key update;
  foreach c in array p_claims loop
    if not c.is_first and not c.begins_step then
      perform lose_attempts(array(select a.attempt_id from attempt a
        where a.key = c.key and a.state in ('reserved', 'dispatched')));
    end if;
    return query select s.outcomes[1], s.numbers[1], s.counted[1], s.outputs[1] from claim_slots(array[c], p_now,
      case when c.reserved_nano > 0 and not p_is_reserved then charge_budgets('{}', '{}', '{}', array[c], p_now) end,
      c.reserved_nano > 0, c.run_id is not null, not c.is_first) s;
  end loop;
end $$;

create function settle_and_claim(p_ends json, p_outputs json[], p_claims json, p_durable boolean)
returns table (outcome text, number int, counted int, output json) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  v_now timestamptz;
  v_ends attempt_end[] := '{}';
  v_ends_steps boolean := false;
  v_keeps boolean := false;
  v_claims claim_request[] := '{}';
  v_is_paid boolean := false;
  v_has_steps boolean := false;
  v_has_earlier boolean := false;
  v_charged text[];
  v_open text[];
  v_outcomes text[];
  v_paid text[];
  v_back bigint[];
  v_spent bigint[];
  v_refusal jsonb;
begin
  if not p_durable then
    perform set_config('synchronous_commit', 'off', true);
  end if;
  if p_ends is not null then
    select array_agg(e), bool_or(e.step_id is not null), bool_or(e.keeps is not null) into v_ends, v_ends_steps, v_keeps
      from json_populate_recordset(null::attempt_end, p_ends) e;
    if not p_durable and cardinality(v_ends) > 1 then -- L3; they are answered alike in any order
      v_ends := array(select e from unnest(v_ends) e order by e.attempt_id);
    end if;
  end if;
  if p_claims is not null then
    select array_agg(c), bool_or(c.reserved_nano > 0), bool_or(c.run_id is not null), bool_or(not c.is_first and not c.begins_step)
      into v_claims, v_is_paid, v_has_steps, v_has_earlier
      from json_populate_recordset(null::claim_request, p_claims) c;
  end if;
  if (v_is_paid or v_keeps) and not p_durable then
    raise exception 'a claim with money, and an answer that is kept, must be durable';
  end if;

  if v_has_steps or v_has_earlier then -- L1
    perform pg_advisory_xact_lock(k) from (
      select distinct hashtextextended(x.key, 0) as k from unnest(v_claims) x
      where not x.is_first or x.run_id is not null order by 1) keys;
  end if;
  if v_has_steps or v_ends_steps then -- L2
    perform 1 from (
      select x.run_id, x.step_id, x.item from unnest(v_claims) x
      union select e.run_id, e.step_id, e.item from unnest(v_ends) e order by 1, 2, 3) k
    cross join lateral (
      select 1 from step s where s.run_id = k.run_id and s.step_id = k.step_id and s.item = k.item for update) s;
  end if;
  if v_has_earlier then -- L3; else the ends are locked as they are written
    with open as (
      select a.attempt_id, a.reserved_nano, k.is_earlier from (
        select m.attempt_id, bool_and(m.is_earlier) as is_earlier from (
          select e.attempt_id, false as is_earlier from unnest(v_ends) e
          union all select o.attempt_id, true from unnest(v_claims) x cross join lateral (
            select a.attempt_id from attempt a where a.key = x.key and not x.is_first and not x.begins_step
              and a.state in ('reserved', 'dispatched') offset 0) o) m
        group by 1 order by 1) k
      cross join lateral (
        select a.attempt_id, a.reserved_nano from attempt a where a.attempt_id = k.attempt_id for update) a
    ) select array_agg(o.attempt_id) filter (where o.reserved_nano > 0),
        array_agg(o.attempt_id) filter (where o.is_earlier) into v_charged, v_open from open o;
  end if;
  v_now := clock_timestamp();
  if v_has_earlier and v_charged is not null then -- L4
    perform lock_budgets(v_claims, v_charged, v_now);
  end if;

  if cardinality(v_ends) > 0 then
    if p_durable then
      select s.outcomes, s.charged, s.back, s.spent into v_outcomes, v_paid, v_back, v_spent
        from settle_ends(v_ends, p_outputs, v_ends_steps) s;
      if v_keeps then
        perform keep_answers(v_ends, p_outputs);
      end if;
    else
      update attempt a set state = e.state, ambiguity = e.ambiguity, counted = e.counted,
          has_failed = e.has_failed, settled_nano = 0, certainty = e.certainty, duration_ms = e.duration_ms, error = e.error, finished_at = clock_timestamp()
        from unnest(v_ends) e
        where a.attempt_id = e.attempt_id and a.token = e.token and a.finished_at is null
          and a.step_id is null and a.reserved_nano = 0
          -- so that every plan comes by the attempts in the order of their ids, and locks them in it
          and a.attempt_id between v_ends[1].attempt_id and v_ends[cardinality(v_ends)].attempt_id;
    end if;
    number := 0;
    counted := 0;
    for n in 1 .. cardinality(v_ends) loop
      outcome := case when p_durable then v_outcomes[n] else 'settled' end;
      return next;
    end loop;
  end if;
  if v_open is not null then -- the claims replace them, except where the step has ended
    perform lose_attempts(array(select a.attempt_id from unnest(v_open) o (attempt_id) join attempt a using (attempt_id)
      left join step s on s.run_id = a.run_id and s.step_id = a.step_id and s.item = a.item
      where coalesce(s.state not in ('succeeded', 'failed', 'unknown', 'skipped', 'cancelled'), true)));
  end if;
  if v_paid is not null or v_is_paid then
    v_refusal := charge_budgets(coalesce(v_paid, '{}'), coalesce(v_back, '{}'), coalesce(v_spent, '{}'), v_claims, v_now);
  end if;

  if cardinality(v_claims) = 0 then
    return;
  elsif cardinality(v_claims) > 1 and (v_refusal is not null or v_has_earlier and exists (
      select 1 from unnest(v_claims) x where not x.is_first group by x.key having count(*) > 1)) then
    return query select * from claim_one_by_one(v_claims, v_now, v_refusal is null);
  else
    return query select unnest(s.outcomes), unnest(s.numbers), unnest(s.counted), unnest(s.outputs)
      from claim_slots(v_claims, v_now, v_refusal, v_is_paid, v_has_steps, v_has_earlier) s;
  end if;
end $$;

create function purge_books(p_table text, p_before timestamptz, p_most int) returns int language plpgsql as $$
declare
  v_deleted int;
begin
  perform set_config('capstan.erases', p_table, true);
  if p_table = 'audit' then
    delete from audit where entry = any (array(
      select entry from (select entry, at from audit order by entry limit p_most) oldest where at < p_before));
  else
    delete from ledger_entry_default where (entry_id, budget_window) in (
      select entry_id, budget_window
      from (select entry_id, budget_window, at from ledger_entry_default order by entry_id limit p_most) oldest
      where at < p_before);
  end if;
  get diagnostics v_deleted = row_count;
  perform set_config('capstan.erases', '', true);
  return v_deleted;
end $$;

create function erase_attempts(p_project text, p_pseudonym text, p_ids text[]) returns int language plpgsql as $$
declare
  v_scopes text[];
  v_windows date[];
  v_spent bigint[];
  v_deleted int;
begin
  perform 1 from attempt where attempt_id = any (p_ids) and project_id = p_project order by attempt_id for update; -- L3
  with moved as (
    update attempt set project_id = p_pseudonym, key = 'erased.' || attempt_id, run_id = null, step_id = null,
      item = null, instance_id = 'erased', endpoint = 'erased', error = null, cached_from = null
    where attempt_id = any (p_ids) and project_id = p_project and reserved_nano > 0 and settled_nano is not null
      and budget_window >= (now() at time zone 'UTC')::date - 4
    returning capability, budget_window, (started_at at time zone 'UTC')::date as utc_day, settled_nano
  )
  select array_agg(t.scope), array_agg(t.window_start), array_agg(t.spent) into v_scopes, v_windows, v_spent from (
    select s.scope, s.window_start, sum(x.sign * m.settled_nano)::bigint as spent
    from moved m cross join (values (p_project, -1), (p_pseudonym, 1)) x (project, sign)
    cross join lateral budget_scopes(x.project, m.capability, null, m.budget_window, m.utc_day) s
    where s.scope <> 'global' group by 1, 2 order by s.scope collate "C", s.window_start) t;
  if v_scopes is not null then
    perform move_budgets(v_scopes, v_windows, array_fill(0::bigint, array[cardinality(v_scopes)]), v_spent);
  end if;
  delete from attempt_choice where attempt_id = any (p_ids);
  delete from attempt where attempt_id = any (p_ids) and project_id = p_project;
  get diagnostics v_deleted = row_count;
  return v_deleted;
end $$;

create function erase_project(p_table text, p_project text, p_pseudonym text, p_keys text[], p_after bigint, p_most int)
returns bigint language plpgsql as $$
declare
  v_done bigint;
begin
  perform set_config('capstan.erases', p_table, true);
  if p_table = 'ledger_entry' then
    update ledger_entry l set project_id = p_pseudonym from (
      select entry_id, budget_window from ledger_entry where project_id = p_project limit p_most) o
    where l.entry_id = o.entry_id and l.budget_window = o.budget_window;
    get diagnostics v_done = row_count;
  elsif p_table = 'skill_version' then
    delete from skill_version where (skill_id, version) in (
      select v.skill_id, v.version from skill s join skill_version v using (skill_id)
      where s.project_id = p_project limit p_most);
    get diagnostics v_done = row_count;
  else
    select max(entry) into v_done from (
      select entry from audit where entry > p_after order by entry limit p_most) page;
    update audit a set project_id = case when a.project_id = p_project then p_pseudonym else a.project_id end,
      actor = case when a.actor = any (p_keys) then 'erased' else a.actor end,
      subject = case when a.project_id = p_project or a.subject = p_project or a.subject = any (p_keys)
        then 'erased' else a.subject end,
      data = case when a.project_id = p_project then '{}'
        else replace(a.data::text, p_project, p_pseudonym)::jsonb end
    where a.entry > p_after and a.entry <= v_done and (a.project_id = p_project or a.subject = p_project
      or a.actor = any (p_keys) or a.subject = any (p_keys) or strpos(a.data::text, p_project) > 0);
  end if;
  perform set_config('capstan.erases', '', true);
  return nullif(v_done, 0);
end $$;
`;

export const createSchema = {
  name: '0001-create-schema',
  up: async (db: Knex): Promise<void> => {
    await db.raw(firstSchema);
  },
};
