/**
 * Tables of access: projects, their keys, the people and browsers that use them, their acts, and the responses stored
 * under their Idempotency-Keys.
 */

/** A project owns everything else; its budget applies to a day in its time zone. */
export const projectTable = `
create table project (
  project_id text primary key,
  name text not null,
  timezone text not null default 'UTC',
  daily_limit_nano bigint not null default 0 check (daily_limit_nano >= 0), -- 0: none
  created_at timestamptz not null default now(),
  erasing_since timestamptz, -- it takes no new work; set once, under a lock of the row (functions/refuse-erased.sql.ts)
  has_budgets boolean not null default false -- rows in scoped_budget
);
`;

/**
 * A limit that a project draws for a part of its calls: `key:<id>`, `label:<name>=<value>`, `capability:<name>` or
 * `user:<id>`, each by day or by month. A call is charged to all that match when it is admitted. Sums are in `budget`.
 */
export const scopedBudgetTable = `
create table scoped_budget (
  project_id text not null references project,
  scope text collate "C" not null,
  period text not null check (period in ('day', 'month')),
  limit_nano bigint not null check (limit_nano > 0),
  soft numeric not null check (soft > 0 and soft < 1), -- share of the limit that is reported
  primary key (project_id, scope, period)
);
`;

/** A key is stored as the digest of its secret. After a rotation the former secret works until `former_until`. */
export const apiKeyTable = `
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
  check ((former_sha256 is null) = (former_until is null))
);
create index api_key_created_by on api_key (created_by); -- the keys below a key
`;

/**
 * A person who signs in at the OpenID provider. Their permissions are those of a key that no secret opens, so
 * revocation, and the keys that they create, follow the rules of keys.
 */
export const personTable = `
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
`;

/**
 * A signed-in browser: it acts as its key, and no longer than the key works. Only the digest of its secret is stored.
 */
export const sessionTable = `
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
`;

/** A code that opens one session of its key, once. Only its digest is stored. */
export const loginCodeTable = `
create table login_code (
  code_sha256 bytea primary key,
  key_id text not null references api_key,
  expires_at timestamptz not null,
  created_at timestamptz not null default now()
);
create index login_code_by_key on login_code (key_id); -- a renewed secret ends them
create index login_code_created_at on login_code (created_at); -- purge
`;

/** Administrative acts with their actor; rows are never changed or truncated. */
export const auditTable = `
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
`;

/** Responses stored for repeated requests. */
export const idempotencyTable = `
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

/** Secrets of a project. The primary key serves the reads of steps and the list. */
export const secretTable = `
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
`;
