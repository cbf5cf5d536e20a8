/** Tables of the registry: instances, their specs, and the projects that may register under a name. */

/** An instance of a capability, its price, health, speed and breaker. */
export const instanceTable = `
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
  worst_case text, -- expressions over a call's input: the most that it costs, and what it is likely to cost
  expected_cost text,
  overruns int not null default 0, -- calls that cost more than their worst case
  drained_by text, -- the key or person; null: not drained
  drained_at timestamptz,
  drain_reason text,
  drain_until timestamptz, -- null: until a person ends it
  warm_up jsonb, -- input and time-out of the warm-up call; null: it needs none
  warm_due_at timestamptz, -- when it is tried, or the open one is given up; null: it is warm
  warm_error text, -- why the last one failed
  overran jsonb not null default '{}', -- by project: when the last three overruns of its calls ended, newest first, Unix ms
  shared_with jsonb not null default '[]', -- "all", or the projects that it serves beside its owner's
  known_digest text, -- of the last spec that was accepted; null: none was
  peer text, -- where its address led then
  unique (name, endpoint),
  check (cost_type <> 'free' or rate_usd = 0)
);
create index instance_changed_xid on instance (changed_xid); -- the routers' poll
create index instance_next_probe_at on instance (next_probe_at) where next_probe_at is not null; -- probing
create index instance_down_since on instance (down_since) where down_since is not null; -- purge
create index instance_owner_project on instance (owner_project); -- how many a project has
create index instance_endpoint on instance (endpoint); -- other names of an endpoint
create index instance_warm_due_at on instance (warm_due_at) where warm_due_at is not null; -- warm-ups
create index instance_drain_until on instance (drain_until) where drain_until is not null; -- ends of drains
create trigger instance_touch before update on instance for each row execute function touch_instance();
`;

/** Whether an instance serves a project: the rule of core/routing/visible-to.ts. */
export const servesFunction = `
create function serves(p_owner text, p_shared_with jsonb, p_project text) returns boolean language sql immutable as $$
  select p_owner = p_project or p_shared_with = '"all"' or p_shared_with @> to_jsonb(p_project)
$$;
`;

/** Specs that instances returned at `/spec`, once per text. */
export const capabilitySpecTable = `
create table capability_spec (
  name text not null,
  version text not null,
  digest text not null,
  spec json not null,
  created_at timestamptz not null default now(),
  primary key (name, version, digest)
);
`;

/** The projects that may register instances under a name. */
export const publisherTable = `
create table publisher (
  name text primary key,
  projects text[] not null check (cardinality(projects) > 0),
  set_by text, -- the operator's key; null: the first registration
  updated_at timestamptz not null default clock_timestamp()
);
`;

/** Notes the transaction that changed an instance, which routers use to poll for changes. It takes no lock. */
export const touchInstance = `
create function touch_instance() returns trigger language plpgsql as $$
begin
  new.changed_xid := pg_current_xact_id();
  return new;
end $$;
`;

/** Other names of a project for capabilities. The primary key serves the read of all aliases of a project. */
export const modelAliasTable = `
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
`;
