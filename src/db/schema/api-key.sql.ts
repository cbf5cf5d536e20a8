/** A key is kept as the digest of its secret. After a rotation the former secret works on until `former_until`. */
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
  check ((former_sha256 is null) = (former_until is null))
);
create index api_key_created_by on api_key (created_by); -- the keys below a key
`;
