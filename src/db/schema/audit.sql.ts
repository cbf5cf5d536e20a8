/** Who changed what; nothing is ever changed or truncated. */
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
