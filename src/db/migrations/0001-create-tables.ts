/**
 * The tables. A row per thing that has its own life; what can be derived is not stored.
 * Documents that users give or get back (jobs, definitions, outputs) are `json`, which keeps their key order
 * and accepts every JSON string; what we query or merge is `jsonb`. Money is bigint nano-USD.
 * `changed_xid` and `event.xid` let readers poll without gaps: a reader takes rows of transactions that
 * ended before the oldest one still open, and starts there next time.
 */
import type { Knex } from 'knex';

const access = `
create table project (
  project_id text primary key,
  name text not null,
  timezone text not null default 'UTC',
  daily_limit_nano bigint not null default 0 check (daily_limit_nano >= 0),
  created_at timestamptz not null default now()
);

create table api_key (
  key_id text primary key,
  name text not null,
  secret_sha256 bytea not null,
  scopes text[] not null,
  projects text[] not null check (cardinality(projects) > 0),
  expires_at timestamptz,
  revoked_at timestamptz,
  created_at timestamptz not null default now()
);

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
`;

const registry = `
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
  tags text[] not null,
  max_concurrency int not null check (max_concurrency > 0),
  state text not null check (state in ('up', 'suspect', 'down', 'quarantined', 'deregistered')),
  reason text,
  generation int not null default 1,
  queue_depth int,
  queue_depth_held int not null default 0, -- slots we held when queue_depth was reported
  queue_depth_at timestamptz,
  duration_ms double precision, -- moving average of successful calls
  deviation_ms double precision, -- moving average of |duration - average|
  success_count double precision not null default 0,
  failure_count double precision not null default 0,
  spec_digest text, -- null until its /spec was read and accepted
  failed_probes int not null default 0,
  next_probe_at timestamptz, -- null: no probe wanted
  registered_at timestamptz not null default now(),
  last_heartbeat_at timestamptz not null default now(),
  changed_xid xid8 not null default pg_current_xact_id(),
  unique (name, endpoint),
  check (cost_type <> 'free' or rate_usd = 0)
);
create index instance_changed_xid on instance (changed_xid); -- the routers' poll
create index instance_next_probe_at on instance (next_probe_at) where next_probe_at is not null; -- probing

create function touch_instance() returns trigger language plpgsql as $$
begin
  new.changed_xid := pg_current_xact_id();
  return new;
end $$;
create trigger instance_touch before update on instance for each row execute function touch_instance();
`;

const pipelines = `
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
  created_at timestamptz not null default now(),
  primary key (project_id, pipeline, version)
);
create index pipeline_version_latest on pipeline_version (project_id, pipeline, created_at desc); -- latest

create table job (
  job_id text primary key,
  project_id text not null references project,
  body json not null,
  created_at timestamptz not null default now()
);
`;

const runs = `
create table run (
  run_id text primary key,
  project_id text not null references project,
  job_id text not null references job,
  pipeline text not null,
  version text not null,
  digest text not null references definition,
  priority text not null check (priority in ('interactive', 'standard', 'batch')),
  budget_ceiling_usd numeric(24, 12),
  labels jsonb not null default '{}',
  state text not null default 'queued'
    check (state in ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled')),
  output json,
  error jsonb,
  created_at timestamptz not null default clock_timestamp(),
  start_delivered_at timestamptz, -- Temporal has taken the start
  started_at timestamptz, -- a worker has taken its first step
  cancel_requested_at timestamptz,
  cancel_reason text,
  cancel_delivered_at timestamptz,
  finished_at timestamptz
);
create index run_listed on run (project_id, run_id desc); -- GET /v1/runs
create index run_by_job on run (job_id); -- GET /v1/jobs/{id}
create index run_undelivered on run (created_at)
  where start_delivered_at is null and finished_at is null; -- maintenance: starts
create index run_cancel_undelivered on run (cancel_requested_at)
  where cancel_requested_at is not null and cancel_delivered_at is null and finished_at is null; -- maintenance

create table step (
  run_id text not null references run on delete cascade,
  step_id text not null,
  item int not null default 0,
  revision int not null default 0,
  state text not null check (state in
    ('ready', 'running', 'retrying', 'succeeded', 'failed', 'unknown', 'skipped', 'cancelled')),
  output json,
  error jsonb,
  started_at timestamptz,
  finished_at timestamptz,
  primary key (run_id, step_id, item)
);

create table attempt (
  attempt_id text primary key,
  project_id text not null references project,
  key text not null, -- run.step.item.revision, sent as Idempotency-Key
  number int not null, -- 1 for the first attempt of the key
  run_id text references run on delete cascade,
  step_id text,
  item int,
  capability text not null,
  instance_id text not null references instance,
  endpoint text not null,
  state text not null check (state in ('reserved', 'dispatched', 'settled', 'released', 'lost')),
  token uuid not null,
  lease_until timestamptz not null,
  cost_type text not null,
  rate_usd numeric(24, 12) not null,
  reserved_nano bigint not null check (reserved_nano >= 0),
  settled_nano bigint check (settled_nano >= 0),
  certainty text check (certainty in ('exact', 'estimated')),
  ambiguity text check (ambiguity in ('not_sent', 'rejected', 'overloaded', 'ambiguous', 'answered')),
  counted boolean not null default false, -- against retry.max
  error jsonb,
  duration_ms double precision,
  decision jsonb not null,
  started_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz
);
create unique index attempt_open_by_key on attempt (key)
  where state in ('reserved', 'dispatched'); -- one open attempt per key
create index attempt_by_key on attempt (key); -- numbers and counts of a key
create index attempt_by_run on attempt (run_id, step_id, item); -- run and step pages
create index attempt_open_by_instance on attempt (instance_id, lease_until)
  where state in ('reserved', 'dispatched'); -- held slots; expired leases

create table event (
  id bigint generated always as identity,
  run_id text not null references run on delete cascade,
  xid xid8 not null default pg_current_xact_id(),
  at timestamptz not null default clock_timestamp(),
  type text not null,
  step_id text,
  attempt int,
  data jsonb not null default '{}',
  primary key (run_id, xid, id) -- a run's log in an order that never changes behind a reader
);
`;

const money = `
create table ledger_entry (
  entry_id bigint generated always as identity primary key,
  attempt_id text not null references attempt,
  kind text not null check (kind in ('reserve', 'settle', 'release', 'adjust')),
  seq int not null default 0,
  project_id text not null references project,
  capability text not null,
  amount_nano bigint not null,
  certainty text not null check (certainty in ('exact', 'estimated')),
  budget_window date not null, -- the project's local date of admission
  at timestamptz not null default clock_timestamp(),
  unique (attempt_id, kind, seq)
);
create index ledger_entry_spend on ledger_entry (project_id, budget_window); -- sums per day

create table budget (
  scope text not null, -- project:<id> or global
  window_start date not null,
  limit_nano bigint not null check (limit_nano >= 0),
  reserved_nano bigint not null default 0 check (reserved_nano >= 0),
  spent_nano bigint not null default 0 check (spent_nano >= 0),
  primary key (scope, window_start)
);

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name;
end $$;
create trigger ledger_entry_append_only before update or delete on ledger_entry
  for each row execute function refuse_change();
`;

export const createTables = {
  name: '0001-create-tables',
  up: async (db: Knex): Promise<void> => {
    for (const part of [access, registry, pipelines, runs, money]) await db.raw(part);
  },
};
