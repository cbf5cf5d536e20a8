/** The input of a run. */
export const jobTable = `
create table job (
  job_id text primary key,
  project_id text not null references project,
  body json not null,
  created_at timestamptz not null default now()
);
`;
