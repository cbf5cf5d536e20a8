/** Stored pipeline versions. A version never changes; the latest is the one stored last. */
import type { PipelineDefinition, PipelineVersion } from '../../contracts/pipeline.ts';
import type { Db } from '../connect.ts';

export interface VersionKey {
  readonly project_id: string;
  readonly pipeline: string;
  readonly version: string;
}

/** The text that a version was sent as. */
export type VersionSource = NonNullable<PipelineVersion['source']>;

export interface VersionRow {
  readonly pipeline: string;
  readonly version: string;
  readonly digest: string;
  readonly definition: PipelineDefinition;
  readonly source: VersionSource | null;
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

/** A stored version by its content. */
export type VersionDigest = Pick<VersionRow, 'version' | 'digest'>;

const selectVersion = `select v.pipeline, v.version, v.digest, v.source, v.created_at, d.body as definition
  from pipeline_version v join definition d using (digest)`;

/** False when the version exists already, with whatever content. */
export async function insertVersion(
  db: Db,
  key: VersionKey,
  { digest, source = null }: { readonly digest: string; readonly source?: VersionSource | null },
): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `insert into pipeline_version (project_id, pipeline, version, digest, source, created_at)
     values (?, ?, ?, ?, ?, clock_timestamp()) on conflict (project_id, pipeline, version) do nothing`,
    [key.project_id, key.pipeline, key.version, digest, source === null ? null : JSON.stringify(source)],
  );
  return rowCount > 0;
}

export async function findVersion(db: Db, key: VersionKey): Promise<VersionRow | null> {
  const { rows } = await db.raw<{ rows: VersionRow[] }>(
    `${selectVersion} where v.project_id = ? and v.pipeline = ? and v.version = ?`,
    [key.project_id, key.pipeline, key.version],
  );
  return rows[0] ?? null;
}

export async function findLatestVersion(
  db: Db,
  { project_id, pipeline }: Omit<VersionKey, 'version'>,
): Promise<VersionRow | null> {
  const { rows } = await db.raw<{ rows: VersionRow[] }>(
    `${selectVersion} where v.project_id = ? and v.pipeline = ? order by v.created_at desc limit 1`,
    [project_id, pipeline],
  );
  return rows[0] ?? null;
}

/** Which version a run is of: that one, that of an alias, or the latest. */
export type VersionChoice =
  | { readonly version: string }
  /** `latest` too. */
  | { readonly alias: string }
  /** A version, else an alias. */
  | { readonly reference: string };

const latest = `select version, digest, created_at, 3 as place from pipeline_version
  where project_id = :project_id and pipeline = :pipeline order by created_at desc limit 1`;
const ofVersion = `select version, digest, created_at, 1 as place from pipeline_version
  where project_id = :project_id and pipeline = :pipeline and version = :name`;
const ofAlias = `select v.version, v.digest, v.created_at, 2 as place
  from pipeline_alias a join pipeline_version v using (project_id, pipeline, version)
  where a.project_id = :project_id and a.pipeline = :pipeline and a.alias = :name`;

/** By the name that it is prepared under. */
const candidates = {
  find_version: ofVersion,
  find_latest: latest,
  find_alias: ofAlias,
  find_version_or_latest: `${ofVersion} union all (${latest}) order by place limit 1`,
  find_version_or_alias: `${ofVersion} union all ${ofAlias} order by place limit 1`,
};

function howToFind(choice: VersionChoice): readonly [how: keyof typeof candidates, name: string] {
  if ('version' in choice) return ['find_version', choice.version];
  if ('alias' in choice) return [choice.alias === 'latest' ? 'find_latest' : 'find_alias', choice.alias];
  const { reference: name } = choice;
  return [name === 'latest' ? 'find_version_or_latest' : 'find_version_or_alias', name];
}

/** @param choice null = the latest */
export async function findDigest(
  db: Db,
  { project_id, pipeline }: Omit<VersionKey, 'version'>,
  choice: VersionChoice | null,
): Promise<VersionDigest | undefined> {
  const [how, name] = howToFind(choice ?? { alias: 'latest' });
  const { rows } = await db
    .raw<{ rows: VersionDigest[] }>(
      `select version, digest from (${candidates[how]}) found`,
      how === 'find_latest' ? { project_id, pipeline } : { project_id, pipeline, name },
    )
    .options({ name: how });
  return rows[0];
}

/** By name; each pipeline with its latest version. */
export async function listPipelines(
  db: Db,
  projectId: string,
  { after, limit }: Page,
): Promise<SummaryRow[]> {
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
}

/** Newest first, after the version `after`. */
export async function listVersions(
  db: Db,
  { project_id, pipeline }: Omit<VersionKey, 'version'>,
  { after, limit }: Page,
): Promise<Pick<VersionRow, 'version' | 'digest' | 'created_at'>[]> {
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
}
