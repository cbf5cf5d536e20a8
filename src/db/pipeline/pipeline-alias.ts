/** Names for versions of a pipeline, which may be moved. `latest` is none of them: it follows what is stored. */
import type { Db } from '../connect.ts';
import type { VersionKey } from './pipeline.ts';

export interface AliasRow {
  readonly alias: string;
  readonly version: string;
  readonly updated_at: Date;
}

/** @returns undefined when there is no such version */
export async function setAlias(
  db: Db,
  { project_id, pipeline, version }: VersionKey,
  alias: string,
): Promise<AliasRow | undefined> {
  const { rows } = await db.raw<{ rows: AliasRow[] }>(
    `insert into pipeline_alias (project_id, pipeline, alias, version)
     select project_id, pipeline, ?, version from pipeline_version
     where project_id = ? and pipeline = ? and version = ?
     on conflict (project_id, pipeline, alias) do update
       set version = excluded.version, updated_at = case when pipeline_alias.version = excluded.version
         then pipeline_alias.updated_at else clock_timestamp() end
     returning alias, version, updated_at`,
    [alias, project_id, pipeline, version],
  );
  return rows[0];
}

/** By name; `latest` first. Empty when there is no such pipeline. */
export async function listAliases(
  db: Db,
  { project_id, pipeline }: Omit<VersionKey, 'version'>,
): Promise<readonly AliasRow[]> {
  const { rows } = await db.raw<{ rows: AliasRow[] }>(
    `(select 'latest' as alias, version, created_at as updated_at from pipeline_version
      where project_id = :project_id and pipeline = :pipeline order by created_at desc limit 1)
     union all
     (select alias, version, updated_at from pipeline_alias
      where project_id = :project_id and pipeline = :pipeline order by alias)`,
    { project_id, pipeline },
  );
  return rows;
}
