-- The tables, with their indexes, constraints, partitions and triggers, and the types of requests to functions. A table
-- is below those that it refers to. The functions of the triggers are in sql/triggers/, all others in sql/.


-- Access: projects, their keys, the people and browsers that use them, their acts, and the responses stored under their
-- Idempotency-Keys.

-- A project owns everything else; its budget applies to a day in its time zone.
create table project (
  project_id text primary key,
  name text not null,
  timezone text not null default 'UTC',
  daily_limit_nano bigint not null default 0 check (daily_limit_nano >= 0), -- 0: none
  created_at timestamptz not null default now(),
  erasing_since timestamptz, -- it takes no new work; set once, under a lock of the row (sql/triggers/refuse-erased.sql)
  has_budgets boolean not null default false, -- rows in scoped_budget
  is_strict boolean not null default false, -- requests that a model would not get whole are refused
  content_days int check (content_days between 1 and 365), -- for how long contents of calls are kept; null: they are not
  content_since timestamptz, -- when that was switched on last: earlier contents are deleted
  on_budget text check (on_budget in ('pause', 'stop', 'refuse')) -- null: the defaults
);

-- A limit that a project draws for a part of its calls: `key:<id>`, `label:<name>=<value>`, `capability:<name>` or
-- `user:<id>`, each by day, by month or by total. A call is charged to all that match when it is admitted. Sums are in `budget`.
create table scoped_budget (
  project_id text not null references project,
  scope text collate "C" not null,
  period text not null check (period in ('day', 'month', 'total')),
  limit_nano bigint not null check (limit_nano > 0),
  soft numeric not null check (soft > 0 and soft < 1), -- share of the limit that is reported
  created_at timestamptz not null default now(), -- calls count from then on
  primary key (project_id, scope, period)
);

-- A key is stored as the digest of its secret. After a rotation the former secret works until `former_until`.
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
  requests_per_minute int check (requests_per_minute > 0), -- null: no limit of its own
  tokens_per_minute int check (tokens_per_minute > 0),
  on_budget text check (on_budget in ('stop', 'refuse')), -- of its direct calls; null: that of the project
  check ((former_sha256 is null) = (former_until is null))
);
create index api_key_created_by on api_key (created_by); -- the keys below a key

-- A person who signs in at the OpenID provider. Their permissions are those of a key that no secret opens, so
-- revocation, and the keys that they create, follow the rules of keys.
create table person (
  key_id text primary key references api_key,
  issuer text not null,
  subject text not null,
  email text,
  grants jsonb not null, -- [{scopes, projects}], from the groups of the last sign-in
  holds_every_project boolean not null,
  created_at timestamptz not null default now(),
  unique (issuer, subject) -- who signs in
);

-- A signed-in browser: it acts as its key, and no longer than the key works. Only the digest of its secret is stored.
create table session (
  secret_sha256 bytea primary key,
  session_id text not null unique, -- what people call it by
  key_id text not null references api_key,
  sign_in_sha256 bytea unique, -- the sign-in at the provider that opened it: each opens one
  provider_sid text, -- what the provider calls it
  tokens bytea, -- of the provider, sealed
  is_renewed boolean not null default false, -- it lasts while the provider renews it
  asked_at timestamptz not null default now(), -- when the provider was last asked, whatever it answered
  checked_at timestamptz not null default now(), -- when the provider last confirmed that the person may stay
  expires_at timestamptz not null,
  created_at timestamptz not null default now()
);
create index session_by_key on session (key_id, created_at desc); -- a renewed secret ends them; GET /v1/sessions
create index session_created_at on session (created_at); -- purge
create index session_due on session (asked_at) where is_renewed; -- asked of the provider again

-- A code that opens one session of its key, once. Only its digest is stored.
create table login_code (
  code_sha256 bytea primary key,
  key_id text not null references api_key,
  expires_at timestamptz not null,
  created_at timestamptz not null default now()
);
create index login_code_by_key on login_code (key_id); -- a renewed secret ends them
create index login_code_created_at on login_code (created_at); -- purge

-- Administrative acts with their actor; rows are never changed or truncated.
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

-- Responses stored for repeated requests.
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

-- Secrets of a project. The primary key serves the reads of steps and the list.
create table secret (
  project_id text not null references project,
  name text not null,
  version integer not null default 1, -- grows with each new value
  capabilities text[] not null, -- names, or beginnings of names with * at the end
  hosts text[] not null, -- whose instances receive it; empty: those of the project
  sealed bytea not null, -- the value, encrypted
  key_id text not null, -- of the key that encrypted it
  set_by text not null, -- the key or person
  set_at timestamptz not null default clock_timestamp(),
  last_used_at timestamptz,
  primary key (project_id, name)
);
create index secret_by_key on secret (key_id); -- sealed again after a rotation
create trigger secret_refuse_erased before insert on secret
  for each row execute function refuse_erased();


-- Deletion by project. The functions that may bypass the triggers against writes and changes are in sql/deletion.sql.

-- The erasure of a project: its request and its progress. After its end only the digest of the project's id remains, so
-- that a later request with the id finds it.
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


-- The registry: instances, their specs, and the projects that may register under a name.

-- An instance of a capability, its price, health, speed and breaker.
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
  uptime_ms double precision, -- the last answer of /health
  uptime_at timestamptz, -- when
  breaker_until timestamptz, -- null: closed
  breaker_openings int not null default 0,
  registered_at timestamptz not null default now(),
  last_heartbeat_at timestamptz not null default now(),
  changed_xid xid8 not null default pg_current_xact_id(),
  worst_case text, -- expressions over a call's input: the most that it costs, and what it is likely to cost
  expected_cost text,
  price_source text, -- where its prices are from, for a person
  overruns int not null default 0, -- calls that cost more than their worst case
  drained_by text, -- the key or person; null: not drained
  drained_at timestamptz,
  drain_reason text,
  drain_until timestamptz, -- null: until a person cancels it
  warm_up jsonb, -- input and timeout of the warm-up call; null: it needs none
  warm_due_at timestamptz, -- when it is tried, or the open one is given up; null: it is warm
  warm_error text, -- why the last one failed
  overran jsonb not null default '{}', -- by project: when the last three overruns of its calls ended, newest first, Unix ms
  shared_with jsonb not null default '[]', -- "all", or the projects that it serves beside its owner's
  known_digest text, -- of the last spec that was accepted; null: none was
  peer text, -- where its address led then
  protocols text[], -- of models, that it speaks itself, by its spec; null: none
  start_cost text, -- expressions over a call's input: what it costs before its first token, and what each adds
  token_cost text,
  stops boolean not null default false, -- a closed connection ends its work, by its spec
  answers_later text check (answers_later in ('held', 'freed')), -- whether a call keeps its slot then, by its spec; null: it answers in place
  lengths int[], -- how many ended calls used so many units (core/money/holds.ts); null: none is known
  affinity text, -- an expression over a call's input: the key of what it needs loaded, by its spec; null: nothing
  max_resident int, -- how many keys it holds at once, by its registration; null: as many as it reports
  resident text[] not null default '{}', -- keys that it has served or reported, the latest first (core/residency/residency.ts)
  most_reported int not null default 1, -- how many it has reported at once
  distrusted jsonb not null default '{}', -- keys that it reported wrongly, and until when they are not believed, Unix ms
  pace double precision, -- its calls with a key take this multiple of the usual time; null: unknown
  last_call_at timestamptz, -- when its last successful call ended, about
  host text collate "C", -- the machine whose slots its calls take; null: none
  host_slots int, -- of the machine, and its memory, as this registration has them
  host_memory_gb double precision,
  takes int check (takes > 0), -- the slots of the machine that a call takes
  drained_with_host boolean not null default false, -- by the drain of its machine, and not by its own
  unique (name, endpoint),
  check (cost_type <> 'free' or rate_usd = 0),
  check ((host is null) = (takes is null))
);
create index instance_changed_xid on instance (changed_xid); -- the routers' poll
create index instance_next_probe_at on instance (next_probe_at) where next_probe_at is not null; -- probing
create index instance_down_since on instance (down_since) where down_since is not null; -- purge
create index instance_owner_project on instance (owner_project); -- how many a project has
create index instance_endpoint on instance (endpoint); -- other names of an endpoint
create index instance_warm_due_at on instance (warm_due_at) where warm_due_at is not null; -- warm-ups
create index instance_drain_until on instance (drain_until) where drain_until is not null; -- ends of drains
create index instance_host on instance (owner_project, host) where host is not null; -- the instances of a host
create trigger instance_touch before update on instance for each row execute function touch_instance();

-- How long calls with a key take in the fleet of a project, where it is loaded (warm) and where it is not (cold):
-- moving averages. The empty key stands for all keys together.
create table load_time (
  owner_project text not null references project,
  name text not null,
  key text not null,
  warm_ms double precision, -- null: none was seen
  cold_ms double precision,
  seen_at timestamptz not null default now(),
  changed_xid xid8 not null default pg_current_xact_id(),
  primary key (owner_project, name, key)
);
create index load_time_changed_xid on load_time (changed_xid); -- the routers' poll
create index load_time_seen_at on load_time (seen_at); -- purge

-- Machines of a project, whose slots the calls of all their instances share. The newest registration decides how many.
create table host (
  owner_project text not null references project,
  name text collate "C" not null,
  slots int not null check (slots > 0),
  memory_gb double precision, -- null: unknown
  drained_by text, -- the key or person; null: not drained. Its instances are drained with it
  drained_at timestamptz,
  drain_reason text,
  drain_until timestamptz, -- null: until a person cancels it
  primary key (owner_project, name)
);
create index host_drain_until on host (drain_until) where drain_until is not null; -- ends of drains

-- Specs that instances returned at `/spec`, once per text.
create table capability_spec (
  name text not null,
  version text not null,
  digest text not null,
  spec json not null,
  created_at timestamptz not null default now(),
  primary key (name, version, digest)
);

-- The projects that may register instances under a name.
create table publisher (
  name text primary key,
  projects text[] not null check (cardinality(projects) > 0),
  set_by text, -- the operator's key; null: the first registration
  updated_at timestamptz not null default clock_timestamp()
);

-- Other names of a project for capabilities. The primary key serves the read of all aliases of a project.
create table model_alias (
  project_id text not null references project,
  name text not null,
  capability text not null,
  set_by text not null, -- the key or person
  updated_at timestamptz not null default clock_timestamp(),
  primary key (project_id, name)
);
create trigger model_alias_refuse_erased before insert on model_alias
  for each row execute function refuse_erased();


-- Leases of slots on free instances (sql/slot-leases.sql).

-- Slots of an instance that one process uses without a claim for each call. Leases past their end hold nothing.
create table slot_lease (
  instance_id text not null references instance on delete cascade,
  holder uuid not null, -- the process
  slots int not null check (slots >= 0),
  expires_at timestamptz not null,
  is_wanted boolean not null default false, -- another router waits for a slot
  primary key (instance_id, holder)
);

-- A call on a leased slot, as `db/attempt/slot-lease.ts` sends it; null `ended_ms_ago` = it is open.
create type call_record as (
  attempt_id text, token uuid, key text, project_id text, capability text, instance_id text, endpoint text, holder uuid,
  lease_ms int, state text, ambiguity text, counted boolean, has_failed boolean, duration_ms double precision, error jsonb,
  began_ms_ago double precision, ended_ms_ago double precision, decision json, inputs json,
  scopes text[], model text, tokens jsonb, content json
);


-- Pipelines: definitions, their versions, the names of versions, and the schedules that start them.

-- A definition is stored once per text.
create table definition (
  digest text primary key,
  body json not null,
  created_at timestamptz not null default now()
);

-- A version of a pipeline refers to its definition, permanently.
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

-- An alias, which can be moved from one version of a pipeline to another.
create table pipeline_alias (
  project_id text not null,
  pipeline text not null,
  alias text not null check (alias <> 'latest'),
  version text not null,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (project_id, pipeline, alias),
  foreign key (project_id, pipeline, version) references pipeline_version
);

-- A schedule, and the version of it that Temporal has accepted.
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
  updated_at timestamptz not null default clock_timestamp(),
  delivered_at timestamptz, -- Temporal has taken it, with the starts that were planned then
  watched_until timestamptz not null default clock_timestamp(), -- every start up to here has a run, or is a skip
  watch_at timestamptz not null default clock_timestamp(), -- when the next ones are looked for
  skips int not null default 0, -- starts that made no run, by its own settings
  skipped_at timestamptz, -- the scheduled time of the latest of them
  skip_reason text
);
create unique index schedule_by_name on schedule (project_id, name) where deleted_at is null; -- one of a name; listing
create index schedule_undelivered on schedule (updated_at)
  where delivered_version < version; -- maintenance: deliveries
create index schedule_by_payload_key on schedule (payload_key)
  where deleted_at is null; -- maintenance: schedules under another key
create index schedule_delivered_at on schedule (delivered_at) where deleted_at is null; -- maintenance: old plans
create index schedule_watch_at on schedule (watch_at) where deleted_at is null; -- maintenance: starts without a run
create trigger schedule_refuse_erased before insert on schedule for each row execute function refuse_erased();

-- A backfill: starts of a schedule for a range of its calendar, oldest first, with a pace of its own.
create table backfill (
  backfill_id text primary key,
  project_id text not null references project,
  schedule_id text not null references schedule on delete cascade,
  from_at timestamptz not null,
  until_at timestamptz not null,
  at_once int not null check (at_once > 0),
  state text not null default 'running' check (state in ('running', 'done', 'cancelled')),
  moments int not null, -- of the calendar in the range
  passed int not null default 0, -- those that were looked at
  existing int not null default 0, -- those that had a run
  passed_until timestamptz, -- the last of them
  waits text, -- why the next start waits
  created_by text not null,
  created_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz
);
create index backfill_listed on backfill (schedule_id, backfill_id desc); -- those of a schedule
create index backfill_running on backfill (backfill_id) where state = 'running'; -- maintenance: starts

-- Starts of a schedule that came to nothing for one reason, in the order of their discovery.
create table schedule_gap (
  gap_id text primary key,
  schedule_id text not null references schedule on delete cascade,
  outcome text not null check (outcome in ('skipped', 'missed')),
  reason text not null,
  count int not null,
  moments timestamptz[] not null, -- the first hundred
  created_at timestamptz not null default clock_timestamp()
);
create index schedule_gap_listed on schedule_gap (schedule_id, gap_id desc); -- its history
create index schedule_gap_created_at on schedule_gap (created_at); -- purge


-- Jobs and their files.

-- The input of a run.
create table job (
  job_id text primary key,
  project_id text not null references project,
  body json not null,
  created_at timestamptz not null default now()
);
create index job_by_project on job (project_id); -- erasure
create trigger job_refuse_erased before insert on job for each row execute function refuse_erased();

-- A deleted job whose files still exist. Rows and files cannot be deleted together, and the store may take long to
-- delete files. The job's row is deleted first, in a short transaction, so that nothing new can refer to the job; this
-- row stays until the store has deleted the files.
create table leaving_job (
  job_id text primary key,
  project_id text not null references project
);
create index leaving_job_by_project on leaving_job (project_id); -- erasure

-- Known facts about files of jobs; the bytes are in the media store. A `stored` row describes one state of one file,
-- which `etag` names: a file with another etag is measured again. A file written directly to the store has no row until
-- it is first read. An `announced` row is an upload that was allowed and may still arrive. It is deleted when the
-- upload is reported complete; the `stored` row keeps its token while the file is in that state.
--
-- To delete a job, call `MediaLibrary.deleteJob` (parts/media/media-library.ts) first: it removes the bytes, known
-- or not, and then these rows, which otherwise keep the job.
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


-- Runs and steps.

-- A run, with the requests for it and those that Temporal has accepted.
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
  payload_key text not null default '', -- the id of the key by which that is encrypted there; '' = by none
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
  parent_workflow_id text, -- it receives the end of the run
  is_below_items boolean not null default false, -- it, or a run above it, is an item of a step with for_each
  parent_told_at timestamptz,
  depth int not null default 0, -- runs above it
  ancestors text[], -- the runs above it, from the first one on; null: nothing started it
  schedule_id text,
  scheduled_at timestamptz,
  scheduled_date date, -- of scheduled_at, in the zone that the schedule had
  period_start timestamptz, -- when the start before was planned
  backfill_id text, -- that started it
  trace_parent text, -- its place in a trace, as traceparent and tracestate carry it; null: one begins with it

  concurrency_key text,
  concurrency_limit int,
  admitted_at timestamptz, -- null: it waits for others with its key

  item_counts jsonb, -- how many of its items ended in which state; null unless it succeeded and has items
  key_id text, -- the key or person that started it, whose budgets its calls are charged to; null: below another run
  versions jsonb, -- what aliases named for it and the runs below it: version by reference; null: below another run, or none
  stalled jsonb, -- why its workflow cannot make progress, and since when; null: it can

  paused_at timestamptz, -- null: it is not paused
  paused_ms bigint not null default 0 -- how long it was paused before
);
create index run_by_digest on run (digest); -- erasure: definitions without a run
create index run_listed on run (project_id, run_id collate "C" desc); -- GET /v1/runs; collated as attempt_by_project is
create index run_by_pipeline on run (project_id, pipeline, run_id collate "C")
  where parent_run_id is null; -- the last runs of each pipeline
create index run_by_job on run (job_id); -- GET /v1/jobs/{id}
create index run_ended on run (project_id, finished_at) where finished_at is not null; -- followers of a project
create index run_open on run (project_id, run_id) where finished_at is null; -- how many a project has; maintenance: sums of runs
create index run_repeats on run (rerun_of) where rerun_of is not null; -- who needs a run that has ended
create unique index run_by_parent on run (parent_run_id, parent_step_id, parent_item, parent_revision)
  where parent_run_id is not null; -- a repeated step meets its run
create unique index run_by_schedule on run (schedule_id, scheduled_at)
  where schedule_id is not null and error ->> 'code' is distinct from 'start_missed'; -- a repeated start meets its run
create index run_by_backfill on run (backfill_id) where backfill_id is not null; -- its progress
create index run_unadmitted on run (project_id, concurrency_key, created_at, run_id)
  where concurrency_key is not null and finished_at is null and admitted_at is null; -- which of a key is next
create index run_admitted on run (project_id, concurrency_key)
  where concurrency_key is not null and finished_at is null and admitted_at is not null; -- how many are running
create index run_undelivered on run (created_at)
  where start_delivered_at is null and finished_at is null
    and (concurrency_key is null or admitted_at is not null); -- maintenance: starts
create index run_ended_unstarted on run (finished_at)
  where finished_at is not null and start_delivered_at is null and cancel_mode = 'terminate'
    and cancel_delivered_at is null; -- maintenance: its start may have got through still
create index run_cancel_undelivered on run (cancel_requested_at)
  where cancel_requested_at is not null and cancel_delivered_at is null and finished_at is null; -- maintenance
create index run_control_undelivered on run (run_id)
  where control_version > control_delivered and finished_at is null; -- maintenance: pauses, resumes, raises
create index run_untold on run (finished_at)
  where parent_workflow_id is not null and parent_told_at is null and finished_at is not null; -- maintenance: parents
create index run_with_workflow on run (start_delivered_at)
  where start_delivered_at is not null and finished_at is null; -- those that Temporal may have closed
create index run_by_payload_key on run (payload_key)
  where payload_key <> '' and finished_at is null; -- maintenance: keys that open runs need
create index run_without_key on run (run_id)
  where stalled ->> 'missing_key' is not null and finished_at is null; -- maintenance: whose key may be back
create trigger run_refuse_erased before insert on run for each row execute function refuse_erased();

-- A step of a run: `item` 0 is the step as a whole, the items of a `for_each`, or the rounds of a `repeat`, are 1, 2, …
create table step (
  run_id text not null references run on delete cascade,
  step_id text not null,
  item int not null default 0,
  revision int not null default 0,
  state text not null check (state = any ( -- read by every statement, as of attempts
    '{ready,running,retrying,waiting,in_review,succeeded,failed,unknown,skipped,cancelled,reused}')),
  output json,
  error jsonb,
  started_at timestamptz,
  finished_at timestamptz,
  items int, -- of a for_each: how many; of a repeat: how many rounds so far
  sub_run_id text, -- in a copy, of a run that may have been deleted since
  reused_from text, -- the run that the result was taken from

  awaiting text check (awaiting = any ('{review,budget,capability,time,run,slot,retry,callback,event}')),
  wait_since timestamptz, -- of this kind of wait
  wait_until timestamptz, -- null: until it is woken
  wake_requested_at timestamptz, -- its run is to receive the end of the wait
  budget_scope text, -- that has no room
  awaited_capability text, -- whose appearance wakes it; null once it has, so that it may continue to wait for the same
  awaited_event text, -- its project and its name, as project/name
  awaited_key text, -- of that event; empty: none
  received_event text, -- the outside event that is its output
  primary key (run_id, step_id, item)
);
create index step_to_wake on step (run_id) where wake_requested_at is not null; -- maintenance: wakes
create index step_to_wake_for on step (awaited_capability)
  where awaited_capability is not null; -- maintenance: capabilities that appear
create index step_awaiting_event on step (awaited_event, awaited_key)
  where awaited_event is not null; -- POST /v1/events
create index step_awaiting on step (awaiting, budget_scope)
  where awaiting in ('budget', 'capability'); -- raises; instances that appear. Not by state, which changes often

-- Child runs of an earlier run that the steps of a rerun continue, instead of starting from their first steps.
create table continued_run (
  run_id text not null references run on delete cascade,
  step_id text not null,
  item int not null, -- 0: the step as a whole
  earlier_run_id text not null, -- which may have been deleted since
  primary key (run_id, step_id, item)
);

-- Calls of steps that wait for a free slot, in lines: one for each capability, version range and tags. The order is
-- priority, then place, then age. A run's calls take places one after another, so runs take turns (N2).
create table queued_call (
  run_id text not null,
  step_id text not null,
  item int not null,
  line text not null,
  priority smallint not null, -- 1 interactive, 2 standard, 3 batch
  place bigint not null,
  queued_at timestamptz not null default clock_timestamp(),
  called_at timestamptz, -- a slot is expected to be free for it
  calls int not null default 0, -- how often it was called without a result
  call_after timestamptz, -- called without a result, it lets others go first
  loads text, -- the key of what it needs loaded; null: nothing
  awaits text, -- the full instance that it rather waits for than to take one that was free (N5)
  refuses text[], -- those that were free; null: all but the awaited one
  primary key (run_id, step_id, item),
  foreign key (run_id, step_id, item) references step on delete cascade
);
create index queued_call_in_line on queued_call (line, priority, place, queued_at); -- whose turn it is
create index queued_call_of_run on queued_call (line, run_id, place); -- the last place of a run

-- The highest place of a line that was called, by priority: a new run takes its first place behind it.
create table call_line (
  line text not null,
  priority smallint not null,
  served bigint not null,
  served_at timestamptz not null default clock_timestamp(), -- when one was called: lines that share hosts take turns
  turned_at timestamptz, -- when one was last called that passed no other (W5); null: never
  primary key (line, priority)
);


-- Skills, their versions, their uses, and the decisions that they follow.

-- A skill that was learnt or imported, and how often it worked.
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
  uses_at_keep int not null default 0, -- uses when a person last looked at it; later ones may flag it
  flagged_at timestamptz,
  escalation_id text unique, -- that made it; one makes at most one
  last_used_at timestamptz not null,
  created_at timestamptz not null,
  check (success_count >= base_success and failure_count >= base_failure),
  unique (project_id, job_type, content_sha256) -- an exact duplicate; skills of a job type
);

-- The texts of a skill; a version never changes.
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

-- One use of a version of a skill, and how it went.
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

-- What a person decided about one proposed repair, as evidence for or against equal repairs.
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


-- Ladders and corrections of steps, reviews by people, and stored advice.

-- A ladder: its lists only grow. Its cost is read from its attempts, whose keys begin with its id.
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
  caller jsonb, -- the key that asked for it, with its user, labels and rights; null: its run's
  check ((run_id is null) = (step_id is null) and (run_id is null) = (item is null)),
  constraint escalation_caller_check check ((run_id is null) = (caller is not null)),
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

-- Corrected inputs of a step; revision 0 is the author's input and has no row.
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

-- A review by a person, who claims it for a while and decides it once.
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
  delivered_at timestamptz, -- its waiter has learnt how it ended
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

-- Advice stored as the response to an equal request.
create table advice_answer (
  project_id text not null references project,
  request_sha256 bytea not null,
  answer json not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (project_id, request_sha256)
);
create index advice_answer_created_at on advice_answer (created_at); -- purge


-- Attempts, the choices behind them, and cached results.

-- One attempt of a call on one instance, with its lease, price and reservation; attempt_choice has the reasons of the
-- choice. Attempts outlive their instances. Checks of values compare with an array constant: Postgres reads the text of
-- each check again for every statement, and a list in parentheses is three times as long.
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
  state text not null check (state = any ('{reserved,dispatched,settled,released,lost,cached}')),
  token uuid not null,
  lease_until timestamptz not null,
  cost_type text not null,
  rate_usd numeric(24, 12) not null,
  reserved_nano bigint not null check (reserved_nano >= 0),
  settled_nano bigint check (settled_nano >= 0),
  budget_window date, -- the project's local day of admission; null for free calls
  certainty text check (certainty = any ('{exact,estimated}')),
  ambiguity text check (ambiguity = any ('{not_sent,rejected,overloaded,ambiguous,answered}')),
  counted boolean not null default false, -- against retry.max
  has_failed boolean not null default false, -- later attempts of the key go to other instances first
  error jsonb,
  duration_ms double precision,
  asked_pause_ms double precision, -- the instance asked for it before the next attempt (Retry-After); null: it did not
  cached_from jsonb, -- of the state cached: the call whose result was used
  saved_nano bigint, -- what that one had cost
  started_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  scopes text[], -- key, user and labels; of a call of a run also its pipeline
  budgets text[], -- the scoped budgets that it is charged to, as period:scope
  risk_nano bigint not null default 0 check (risk_nano >= 0), -- it may cost so much more than its reservation
  -- Of a call whose reservation grows with it (G1 to G4, core/money/holds.ts):
  expected_nano bigint, -- what it is expected to hold at its end, with the variance of that; null: it holds its worst case
  variance double precision not null default 0,
  grown_nano bigint not null default 0, -- the part of its reservation that came after its admission
  pieces int not null default 0, -- in so many pieces
  piece_ms int[], -- of the first 32 of them, the time after the start; null: there is none
  piece_nano bigint[], -- and the amount; the last also has those of all later ones
  is_stopped boolean, -- it was stopped on its way, because its budgets had no more room; null: it was not
  model text, -- as its provider names it; null: the answer names none
  tokens jsonb, -- that the instance reports, by class; null: none
  -- Of a call whose instance has answered 202 (sql/callbacks.sql):
  later jsonb, -- its slot (held, freed), and how its answer is settled and checked; null: it is answered in place
  answers_by timestamptz -- its deadline; null: a process waits for its answer
);
create unique index attempt_open_by_key on attempt (key)
  where state in ('reserved', 'dispatched'); -- one open attempt per key
create index attempt_by_key on attempt (key); -- numbers and counts of a key
create index attempt_by_run on attempt (run_id, step_id, item) where run_id is not null; -- run and step pages
create index attempt_open_by_instance on attempt (instance_id, lease_until)
  where state in ('reserved', 'dispatched'); -- held slots; expired leases
create index attempt_parked on attempt (answers_by)
  where state = 'dispatched' and answers_by is not null; -- maintenance: deadlines of later answers
create index attempt_by_escalation on attempt (key text_pattern_ops)
  where key like 'esc\_%'; -- what an escalation cost
create index attempt_cached on attempt (project_id, started_at) include (saved_nano)
  where state = 'cached'; -- what was saved
-- Decisions and costs of a time: ids begin with it. In a collation that the primary key has not, or the planner would
-- take that for the order, and read what all others have done since a large project was last busy.
create index attempt_by_project on attempt (project_id, attempt_id collate "C");
-- Lists of ended calls by one of their facts, newest first: each call is added once, at its end. The few open calls are
-- found by attempt_open_by_instance.
create index attempt_by_capability on attempt (project_id, capability, attempt_id collate "C")
  where finished_at is not null;
create index attempt_by_endpoint on attempt (project_id, endpoint, attempt_id collate "C")
  where finished_at is not null;
create index attempt_by_model on attempt (project_id, model, attempt_id collate "C") where model is not null;
create index attempt_failed on attempt (project_id, attempt_id collate "C") where error is not null;
-- Entries wait in a list and are added together, which is less work. The list is short, since one call waits for all of it.
create index attempt_by_scope on attempt using gin (scopes) with (gin_pending_list_limit = 128)
  where scopes is not null and finished_at is not null;
create index attempt_paid on attempt (finished_at) where budget_window is not null; -- maintenance: sums of what has ended since

-- The answer to an attempt that came later, at the address that its request carried. A row means that the address is used.
create table callback_answer (
  attempt_id text primary key references attempt on delete cascade,
  body bytea, -- as it was sent, sealed by the key; null: it was settled
  key_id text, -- null: there was no key, and the body is not sealed
  is_late boolean not null, -- the call did not wait for it any more, or its deadline was over
  received_at timestamptz not null default clock_timestamp()
);
create index callback_answer_unread on callback_answer (received_at) where body is not null; -- maintenance: answers that no step takes

-- The key that signs the addresses for answers.
create table callback_key (
  key bytea not null,
  is_only boolean primary key default true check (is_only) -- one row
);
insert into callback_key (key) values (uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));

-- The reasons why an attempt's instance was chosen, and the inputs of the choice. The row is written once, apart from
-- the attempt, which is updated at its end. It is read as a whole and never searched, so it is text. Its retention is
-- shorter than that of the attempt; it is partitioned by week (db/partitions.ts).
create table attempt_choice (
  attempt_id text primary key,
  decision json not null,
  inputs json -- to make the choice again; null: nothing was chosen
) partition by range (attempt_id);
create table attempt_choice_default partition of attempt_choice default;

-- What was sent in a call and answered, shortened, of projects that keep it: `project.content_days` is read when it is
-- written, when it is shown and when it is deleted.
create table call_content (
  attempt_id text primary key references attempt on delete cascade,
  project_id text not null references project,
  content json not null, -- its input and output
  stored_at timestamptz not null default clock_timestamp()
);
create index call_content_by_project on call_content (project_id, stored_at); -- purge; erasure

-- Cached results for equal calls. The result itself is in the step that produced it; this row maps a call to it. A row
-- without `stored_at` is a call in flight, which others wait for.
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

-- Cached answers of direct calls. The output is here, since such a call has no step; the attempt may be deleted before
-- the answer expires.
create table cached_answer (
  project_id text not null references project,
  key bytea not null, -- SHA-256 of what makes the call the same
  capability text not null,
  attempt_id text not null, -- of the original call
  instance_id text not null,
  endpoint text not null,
  cost_nano bigint not null,
  output json not null,
  stored_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (project_id, key)
);
create index cached_answer_expired on cached_answer (expires_at); -- purge

-- The requests of claims and the ends of attempts, as `db/attempt/attempt.ts` sends them.
create type claim_request as (
  attempt_id text, token uuid, key text, is_first boolean, begins_step boolean, known_failures text[], project_id text,
  run_id text, step_id text, item int, revision int,
  capability text, instance_id text, must_be_idle boolean, cost_type text, rate_usd numeric,
  lease_ms int, reserved_nano bigint, decision json, inputs json, scopes text[],
  budgets text[], -- set by draw_budgets
  risk_nano bigint, expected_nano bigint, variance double precision,
  has_host boolean -- its instance shares the slots of a host; null: it does not
);
create type attempt_end as (
  attempt_id text, token uuid, state text, ambiguity text, counted boolean, has_failed boolean,
  settled_nano bigint, certainty text, duration_ms double precision, asked_pause_ms double precision, error jsonb,
  run_id text, step_id text, item int, step_state text, event_data jsonb, keeps json, is_stopped boolean,
  model text, tokens jsonb, content json
);


-- Money. The functions by which claims and ends of attempts move it are in sql/money.sql.

-- Budgets by scope and window: `run:<run>`, `project:<project>`, `capability:<project>:<name>`, `global`, and
-- `budget:<project>:<period>:<scope>` of scoped_budget. A window is a day (local to the project; UTC for global) or a
-- month, by its first day. `-infinity` is the window of a run, of a budget by total, and of the permanent global limit,
-- which has a row from the beginning. Rows are always locked in the order of their key, so scopes sort bytewise.
create table budget (
  scope text collate "C" not null,
  window_start date not null,
  limit_nano bigint check (limit_nano >= 0), -- null: none
  reserved_nano bigint not null default 0 check (reserved_nano >= 0),
  spent_nano bigint not null default 0 check (spent_nano >= 0),
  rest_nano bigint not null default 0, -- what open calls are expected to hold at their end, beyond their reservations
  variance double precision not null default 0, -- of that
  reached_50_at timestamptz,
  reached_80_at timestamptz,
  reached_100_at timestamptz, -- or a call was refused
  announced int not null default 0, -- the highest mark that was logged
  soft numeric not null default 0.8, -- the share of the limit at which reached_80_at is set
  opened_at timestamptz not null default now(), -- no call was charged to it earlier
  primary key (scope, window_start)
);
create index budget_unannounced on budget (announced)
  where (reached_50_at is not null and announced < 50) or (reached_80_at is not null and announced < 80)
    or (reached_100_at is not null and announced < 100); -- maintenance: marks
create index budget_by_day on budget (window_start) where window_start > '-infinity'; -- maintenance: sums of days
insert into budget (scope, window_start) values ('global', '-infinity');

-- What happens to one budget, as sql/money.sql moves it.
create type budget_move as (
  scope text, window_start date, moved bigint, spent bigint, wanted bigint, rest bigint, variance double precision,
  wanted_rest bigint, wanted_variance double precision
);

-- The wish of an open call for a larger reservation, as `db/attempt/hold.ts` sends it.
create type hold_piece as (
  attempt_id text, token uuid, most_nano bigint, least_nano bigint, expected_nano bigint, variance double precision
);

-- Reserved, settled, released and adjusted amounts; entries never change. An entry is written by the statement that
-- writes its attempt, so it has no foreign keys, whose checks took most of its time. Its checks are written as those of
-- attempts. The table is partitioned by month (db/partitions.ts); an attempt has one day, so its entries are in one
-- partition.
create table ledger_entry (
  entry_id bigint generated always as identity,
  attempt_id text not null,
  kind text not null check (kind = any ('{reserve,settle,release,adjust}')),
  seq int not null default 0,
  project_id text not null,
  capability text not null,
  amount_nano bigint not null,
  certainty text not null check (certainty = any ('{exact,estimated}')),
  budget_window date not null, -- the project's local date of admission
  at timestamptz not null default clock_timestamp(),
  budgets text[], -- of a reservation: the scoped budgets that hold it
  primary key (entry_id, budget_window),
  unique (attempt_id, kind, seq, budget_window)
) partition by range (budget_window);
create table ledger_entry_default partition of ledger_entry default;
create index ledger_entry_listed on ledger_entry (project_id, budget_window desc, entry_id desc); -- GET /v1/ledger
create index ledger_entry_drawn on ledger_entry (budget_window) where budgets is not null; -- maintenance: sums of months
create trigger ledger_entry_append_only before update or delete on ledger_entry
  for each row execute function refuse_change();


-- The log of runs, and webhooks with their deliveries.

-- The log of a run, in an order that never changes behind a reader: readers see entries below the oldest open
-- transaction. A restored log is lowered below all transactions: db/recovery.ts. It is partitioned by week
-- (db/partitions.ts).
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

-- Webhooks of a project. The secret that signs deliveries has to be stored in plain text.
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

-- One delivery for each event and webhook, and its result.
create table webhook_delivery (
  delivery_id text primary key,
  webhook_id text not null references webhook on delete cascade,
  event text not null,
  subject text not null, -- the event: reported once
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

-- Hooks of a project, which receive requests that start runs. Their secrets have to be stored in plain text too.
create table hook (
  hook_id text primary key,
  project_id text not null references project,
  name text not null,
  body json not null, -- its settings
  secret text not null,
  former_secret text, -- works until former_until
  former_until timestamptz,
  refusals int not null default 0, -- requests that proved no sender
  refused_at timestamptz, -- when the latest of them came
  refuse_reason text,
  created_by text not null, -- the key or person, whose budgets its runs are charged to
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  unique (project_id, name) -- a delivery finds it; listing
);
create trigger hook_refuse_erased before insert on hook for each row execute function refuse_erased();

-- A delivery that proved its sender, and what became of it.
create table hook_delivery (
  delivery_id text primary key,
  hook_id text not null references hook on delete cascade,
  outcome text not null
    check (outcome in ('started', 'repeated', 'filtered', 'answered', 'failed', 'refused')),
  reason text,
  key text, -- by which equal ones are known
  run_id text, -- which may have been deleted since
  replay_of text,
  headers json not null, -- without secrets
  body json, -- null: too large, or that of another delivery
  bytes int not null,
  created_at timestamptz not null default clock_timestamp()
);
create index hook_delivery_listed on hook_delivery (hook_id, created_at desc, delivery_id desc); -- its log
create index hook_delivery_created_at on hook_delivery (created_at); -- purge

-- Outside events of the last day, for steps that begin to wait later (V1 to V4, core/outside-events/rules.ts).
create table outside_event (
  event_id text primary key,
  project_id text not null references project,
  name text not null,
  key text not null, -- empty: none
  sender_id text, -- by which its sender knows it
  payload json not null,
  bytes int not null, -- of the payload
  waiting int not null default 0, -- steps that took it when it came
  is_taken boolean not null default false, -- by any step
  sent_by text not null, -- a key or a person
  created_at timestamptz not null default clock_timestamp()
);
create trigger outside_event_refuse_erased before insert on outside_event
  for each row execute function refuse_erased();
create unique index outside_event_sender_id on outside_event (project_id, name, sender_id)
  where sender_id is not null; -- an event that is sent again
create index outside_event_kept on outside_event (project_id, name, key, created_at); -- a step begins to wait
create index outside_event_untaken on outside_event (project_id) include (bytes) where not is_taken; -- their limit
create index outside_event_created_at on outside_event (created_at); -- purge


-- Facts about the database itself.

-- The oldest schema that a process must know to work on this database. A migration that removes something that older
-- processes need raises it to its own number. All others leave it, so that processes of both versions run side by side.
create table schema_floor (
  migration int not null,
  is_only boolean primary key default true check (is_only) -- one row
);
insert into schema_floor (migration) values (1);

-- The texts of sql/ that are in force (sql/functions.ts).
create table schema_function (
  name text primary key, -- of the file
  sha256 text not null, -- of its text
  schema int not null -- the newest that the process knew which created it
);

-- The Postgres cluster to which the transaction numbers in this database belong: db/recovery.ts.
create table cluster (
  written_by xid8 not null default pg_current_xact_id(), -- the transaction that wrote this row, as long as it was not copied
  is_only boolean primary key default true check (is_only) -- one row
);
