/**
 * Results that equal calls take. What a result is stands in the step that made it; here is which call it answers. A row
 * without `stored_at` is a call under way, which others wait for.
 */
export const cachedResultTable = `
create table cached_result (
  project_id text not null references project,
  key bytea not null, -- SHA-256 of what makes the call the same
  run_id text not null references run on delete cascade, -- that makes it, or has made it
  step_id text not null,
  item int not null,
  pipeline text not null,
  capability text not null,
  led_at timestamptz not null,
  attempt_id text, -- that was answered
  places json, -- of files in its input
  files json, -- what it wrote and named, with SHA-256
  stored_at timestamptz,
  expires_at timestamptz not null,
  primary key (project_id, key)
);
create index cached_result_by_run on cached_result (run_id); -- entries go with their run
create index cached_result_listed on cached_result (project_id, stored_at desc, key)
  where stored_at is not null; -- GET /v1/cache
create index cached_result_expired on cached_result (expires_at); -- purge
`;
