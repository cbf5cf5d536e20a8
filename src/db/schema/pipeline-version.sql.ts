/** A version of a pipeline names its definition, for ever. */
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
