/** Advice is kept to answer the same request with. */
export const adviceAnswerTable = `
create table advice_answer (
  project_id text not null references project,
  request_sha256 bytea not null,
  answer json not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (project_id, request_sha256)
);
create index advice_answer_created_at on advice_answer (created_at); -- purge
`;
