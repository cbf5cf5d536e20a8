/** A browser that has signed in: it acts as its key, and no longer than the key does. Only the digest of its secret is kept. */
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
