/**
 * A job whose row is gone and whose files are not yet. Rows and files cannot go at once, and files take as long as their
 * store does: the row goes first, in a short transaction, so that nothing new can name the job, and this one stays until
 * the store has deleted its files.
 */
export const leavingJobTable = `
create table leaving_job (
  job_id text primary key,
  project_id text not null references project
);
create index leaving_job_by_project on leaving_job (project_id); -- erasure
`;
