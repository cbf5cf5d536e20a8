/**
 * One delivery to one instance, with its lease, price and reservation; why it was chosen is in attempt_choice. Attempts
 * outlive the instances that they were made on.
 */
export const attemptTable = `
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
create index attempt_by_project on attempt (project_id, attempt_id); -- decisions and costs of a time: ids begin with it
create index attempt_paid on attempt (finished_at) where reserved_nano > 0; -- maintenance: sums of what has ended since
`;
