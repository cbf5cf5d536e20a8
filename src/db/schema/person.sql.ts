/**
 * Somebody who signs in at the OpenID provider. What they may do stands with a key that no secret opens, so revocation,
 * and the keys that they make, follow the rules of keys.
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
