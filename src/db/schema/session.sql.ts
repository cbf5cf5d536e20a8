/** A browser that has signed in: it acts as its key, and no longer than the key does. Only the digest of its secret is kept. */
export const sessionTable = `
create table session (
  secret_sha256 bytea primary key,
  key_id text not null references api_key,
  expires_at timestamptz not null,
  created_at timestamptz not null default now()
);
create index session_by_key on session (key_id); -- a renewed secret ends them
create index session_created_at on session (created_at); -- purge
`;
