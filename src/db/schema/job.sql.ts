/** The input of a run. */
export const jobTable = `
create table job (
  job_id text primary key,
  project_id text not null references project,
  body json not null,
  created_at timestamptz not null default now()
);
create index job_by_project on job (project_id); -- erasure
create trigger job_refuse_erased before insert on job for each row execute function refuse_erased();
`;
