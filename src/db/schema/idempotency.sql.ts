/** Answers are kept to answer a repeated request with. */
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
