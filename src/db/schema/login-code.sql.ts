/** A code that opens one session of its key, once. Only its digest is kept. */
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
