/** Tables of jobs and of their files. */

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

/**
 * A deleted job whose files still exist. Rows and files cannot be deleted together, and the store may take long to
 * delete files. The job's row is deleted first, in a short transaction, so that nothing new can refer to the job; this
 * row stays until the store has deleted the files.
 */
export const leavingJobTable = `
create table leaving_job (
  job_id text primary key,
  project_id text not null references project
);
create index leaving_job_by_project on leaving_job (project_id); -- erasure
`;

/**
 * Known facts about files of jobs; the bytes are in the media store. A `stored` row describes one state of one file,
 * which `etag` names: a file with another etag is measured again. A file written directly to the store has no row until
 * it is first read. An `announced` row is an upload that was allowed and may still arrive. It is deleted when the
 * upload is reported complete; the `stored` row keeps its token while the file is in that state.
 *
 * To delete a job, call `MediaLibrary.deleteJob` (services/media/media-library.ts) first: it removes the bytes, known
 * or not, and then these rows, which otherwise keep the job.
 */
export const mediaObjectTable = `
create table media_object (
  project_id text not null references project,
  job_id text not null references job,
  file text not null, -- one to seven segments joined by /
  size bigint not null check (size >= 0),
  sha256 bytea not null, -- of an announced one: what was promised
  etag text, -- the store's name for this state of the file; of an announced one: for what its parts have made
  content_type text not null,
  state text not null check (state in ('announced', 'stored')),
  token bytea unique, -- SHA-256 of what allows the upload; of a stored one: by which it came, if by one
  has_come boolean not null default false, -- of an announced one: a file with its digest was seen there, and counts in its place
  upload_id text, -- the store's name for an upload in parts
  created_at timestamptz not null default now(),
  check (state = 'announced' or etag is not null),
  check (state = 'stored' or token is not null)
);
create unique index media_object_stored on media_object (job_id, file) where state = 'stored';
create index media_object_by_project on media_object (project_id, state) include (size); -- quota, from the index alone
create index media_object_by_job on media_object (job_id); -- deletion of a job
create index media_object_announced on media_object (created_at) where state = 'announced'; -- sweep
`;
