/** Tables of pipelines: definitions, their versions, the names of versions, and the schedules that start them. */

/** A definition is stored once per text. */
export const definitionTable = `
create table definition (
  digest text primary key,
  body json not null,
  created_at timestamptz not null default now()
);
`;

/** A version of a pipeline refers to its definition, permanently. */
export const pipelineVersionTable = `
create table pipeline_version (
  project_id text not null references project,
  pipeline text not null,
  version text not null,
  digest text not null references definition,
  source json, -- text and content_type as it was sent; null: it was not sent as a text
  created_at timestamptz not null default now(),
  primary key (project_id, pipeline, version)
);
create index pipeline_version_latest on pipeline_version (project_id, pipeline, created_at desc); -- latest
`;

/** An alias, which can be moved from one version of a pipeline to another. */
export const pipelineAliasTable = `
create table pipeline_alias (
  project_id text not null,
  pipeline text not null,
  alias text not null check (alias <> 'latest'),
  version text not null,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (project_id, pipeline, alias),
  foreign key (project_id, pipeline, version) references pipeline_version
);
`;

/** A schedule, and the version of it that Temporal has accepted. */
export const scheduleTable = `
create table schedule (
  schedule_id text primary key,
  project_id text not null references project,
  workflow_id text not null, -- its name in Temporal, which stays
  name text not null,
  body json not null, -- as it was asked for
  created_by text not null, -- the key or person
  version int not null default 1, -- grows with every change
  delivered_version int not null default 0, -- that Temporal has taken
  payload_key text not null default '', -- the id of the key by which that is encrypted there; '' = by none
  deleted_at timestamptz, -- Temporal is to forget it
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  delivered_at timestamptz, -- Temporal has taken it, with the starts that were planned then
  watched_until timestamptz not null default clock_timestamp(), -- every start up to here has a run, or is a skip
  watch_at timestamptz not null default clock_timestamp(), -- when the next ones are looked for
  skips int not null default 0, -- starts that made no run, by its own settings
  skipped_at timestamptz, -- the scheduled time of the latest of them
  skip_reason text
);
create unique index schedule_by_name on schedule (project_id, name) where deleted_at is null; -- one of a name; listing
create index schedule_undelivered on schedule (updated_at)
  where delivered_version < version; -- maintenance: deliveries
create index schedule_by_payload_key on schedule (payload_key)
  where deleted_at is null; -- maintenance: what stands under another key
create index schedule_delivered_at on schedule (delivered_at) where deleted_at is null; -- maintenance: old plans
create index schedule_watch_at on schedule (watch_at) where deleted_at is null; -- maintenance: starts without a run
create trigger schedule_refuse_erased before insert on schedule for each row execute function refuse_erased();
`;
