/** Stored pipeline versions. A version never changes; the latest is the one stored last. */
import type { PipelineDefinition } from '../contracts/pipeline.ts';
import type { Db } from './connect.ts';

export interface VersionKey {
  readonly project_id: string;
  readonly pipeline: string;
  readonly version: string;
}

export interface VersionRow {
  readonly pipeline: string;
  readonly version: string;
  readonly digest: string;
  readonly definition: PipelineDefinition;
  readonly created_at: Date;
}

export interface SummaryRow {
  readonly pipeline: string;
  readonly latest_version: string;
  readonly description: string | null;
  readonly steps: number;
  readonly created_at: Date;
}

interface Page {
  readonly after: string | null;
  readonly limit: number;
}

const selectVersion = `select v.pipeline, v.version, v.digest, v.created_at, d.body as definition
  from pipeline_version v join definition d using (digest)`;

/** False when the version exists already, with whatever content. */
export const insertVersion = async (db: Db, key: VersionKey, digest: string): Promise<boolean> => {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `insert into pipeline_version (project_id, pipeline, version, digest, created_at)
     values (?, ?, ?, ?, clock_timestamp()) on conflict (project_id, pipeline, version) do nothing`,
    [key.project_id, key.pipeline, key.version, digest],
  );
  return rowCount > 0;
};

export const findVersion = async (db: Db, key: VersionKey): Promise<VersionRow | null> => {
  const { rows } = await db.raw<{ rows: VersionRow[] }>(
    `${selectVersion} where v.project_id = ? and v.pipeline = ? and v.version = ?`,
    [key.project_id, key.pipeline, key.version],
  );
  return rows[0] ?? null;
};

export const findLatestVersion = async (
  db: Db,
  { project_id, pipeline }: Omit<VersionKey, 'version'>,
): Promise<VersionRow | null> => {
  const { rows } = await db.raw<{ rows: VersionRow[] }>(
    `${selectVersion} where v.project_id = ? and v.pipeline = ? order by v.created_at desc limit 1`,
    [project_id, pipeline],
  );
  return rows[0] ?? null;
};

/** By name; each pipeline with its latest version. */
export const listPipelines = async (
  db: Db,
  projectId: string,
  { after, limit }: Page,
): Promise<SummaryRow[]> => {
  const { rows } = await db.raw<{ rows: SummaryRow[] }>(
    `select v.pipeline, v.version as latest_version, v.created_at, d.body->>'description' as description,
       json_array_length(d.body->'steps') as steps
     from (
       select distinct on (pipeline) pipeline, version, digest, created_at from pipeline_version
       where project_id = ? and pipeline > coalesce(?, '') order by pipeline, created_at desc limit ?
     ) v join definition d using (digest) order by v.pipeline`,
    [projectId, after, limit],
  );
  return rows;
};

/** Newest first, after the version `after`. */
export const listVersions = async (
  db: Db,
  { project_id, pipeline }: Omit<VersionKey, 'version'>,
  { after, limit }: Page,
): Promise<Pick<VersionRow, 'version' | 'digest' | 'created_at'>[]> => {
  const { rows } = await db.raw<{ rows: VersionRow[] }>(
    `select version, digest, created_at from pipeline_version
     where project_id = :project_id and pipeline = :pipeline
       and (:after::text is null or (created_at, version) < (
         select created_at, version from pipeline_version
         where project_id = :project_id and pipeline = :pipeline and version = :after))
     order by created_at desc, version desc limit :limit`,
    { project_id, pipeline, after, limit },
  );
  return rows;
};
