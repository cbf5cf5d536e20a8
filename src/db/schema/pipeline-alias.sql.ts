/** A name that can be moved from one version of a pipeline to another. */
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
