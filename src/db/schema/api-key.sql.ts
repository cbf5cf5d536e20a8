/** A key is kept as the digest of its secret. */
export const apiKeyTable = `
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
`;
