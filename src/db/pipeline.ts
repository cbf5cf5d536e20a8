/**
 * Stored pipelines: versions, the definitions that they refer to, and aliases of versions. A version never changes; the
 * latest is the one stored last.
 *
 * A misspelt name is compared with the existing ones; a check of references reads many stored pipelines at once.
 */
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { PipelineVersion } from '@capstan/core/contracts/pipeline-answers';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { Db } from './connect.ts';
import { query } from './statements.ts';

export interface VersionKey {
  readonly project_id: string;
  readonly pipeline: string;
  readonly version: string;
}

/** The text in which a version was sent. */
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

/** A stored version, identified by its content. */
type VersionDigest = Pick<VersionRow, 'version' | 'digest'>;

const selectVersion = `select v.pipeline, v.version, v.digest, v.source, v.created_at, d.body as definition
  from pipeline_version v join definition d using (digest)`;

/** @returns false if the version exists already, with any content */
export function insertVersion(
  db: Db,
  key: VersionKey,
  { digest, source = null }: { readonly digest: string; readonly source?: VersionSource | null },
): Promise<boolean> {
  return query(db).wrote(
    `insert into pipeline_version (project_id, pipeline, version, digest, source, created_at)
     values (?, ?, ?, ?, ?, clock_timestamp()) on conflict (project_id, pipeline, version) do nothing`,
    [key.project_id, key.pipeline, key.version, digest, source === null ? null : JSON.stringify(source)],
  );
}

export async function findVersion(db: Db, key: VersionKey): Promise<VersionRow | null> {
  const row = await query<VersionRow>(db).first(
    `${selectVersion} where v.project_id = ? and v.pipeline = ? and v.version = ?`,
    [key.project_id, key.pipeline, key.version],
  );
  return row ?? null;
}

export async function findLatestVersion(
  db: Db,
  { project_id, pipeline }: Omit<VersionKey, 'version'>,
): Promise<VersionRow | null> {
  const row = await query<VersionRow>(db).first(
    `${selectVersion} where v.project_id = ? and v.pipeline = ? order by v.created_at desc limit 1`,
    [project_id, pipeline],
  );
  return row ?? null;
}

/** How a run chooses its version: by number, by alias, or the latest. */
export type VersionChoice =
  | { readonly version: string }
  /** Includes `latest`. */
  | { readonly alias: string }
  /** A version, or else an alias. */
  | { readonly reference: string };

const latest = `select version, digest, created_at, 3 as place from pipeline_version
  where project_id = :project_id and pipeline = :pipeline order by created_at desc limit 1`;
const ofVersion = `select version, digest, created_at, 1 as place from pipeline_version
  where project_id = :project_id and pipeline = :pipeline and version = :name`;
const ofAlias = `select v.version, v.digest, v.created_at, 2 as place
  from pipeline_alias a join pipeline_version v using (project_id, pipeline, version)
  where a.project_id = :project_id and a.pipeline = :pipeline and a.alias = :name`;

/** By the name of the prepared statement. */
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

export interface JobSchemaRow {
  readonly pipeline: string;
  readonly description: string | null;
  /** Null: any object. */
  readonly job_schema: JsonObject | null;
}

/** By name; of the latest version of each pipeline. */
export function listJobSchemas(
  db: Db,
  projectId: string,
  { after, limit }: Page,
): Promise<readonly JobSchemaRow[]> {
  return query<JobSchemaRow>(db).all(
    `select v.pipeline, d.body->>'description' as description, d.body->'job_schema' as job_schema
     from (
       select distinct on (pipeline) pipeline, digest from pipeline_version
       where project_id = ? and pipeline > coalesce(?, '') order by pipeline, created_at desc limit ?
     ) v join definition d using (digest) order by v.pipeline`,
    [projectId, after, limit],
  );
}

/**
 * The pipeline whose name begins with this text, and has this digest. Reads the names that begin so, in one statement.
 * @param digest the first hexadecimal digits of the name's SHA-256
 */
export async function findPipelineByDigest(
  db: Db,
  projectId: string,
  { begin, digest }: { readonly begin: string; readonly digest: string },
): Promise<string | null> {
  const row = await query<{ pipeline: string }>(db).first(
    `select pipeline from (
       select distinct pipeline from pipeline_version where project_id = :projectId and starts_with(pipeline, :begin)
     ) named where left(encode(sha256(convert_to(pipeline, 'UTF8')), 'hex'), length(:digest)) = :digest
     limit 1`,
    { projectId, begin, digest },
  );
  return row?.pipeline ?? null;
}

/** By name; each pipeline with its latest version. */
export function listPipelines(db: Db, projectId: string, { after, limit }: Page): Promise<SummaryRow[]> {
  return query<SummaryRow>(db).all(
    `select v.pipeline, v.version as latest_version, v.created_at, d.body->>'description' as description,
       json_array_length(d.body->'steps') as steps
     from (
       select distinct on (pipeline) pipeline, version, digest, created_at from pipeline_version
       where project_id = ? and pipeline > coalesce(?, '') order by pipeline, created_at desc limit ?
     ) v join definition d using (digest) order by v.pipeline`,
    [projectId, after, limit],
  );
}

/** Newest first, after the version `after`. */
export function listVersions(
  db: Db,
  { project_id, pipeline }: Omit<VersionKey, 'version'>,
  { after, limit }: Page,
): Promise<Pick<VersionRow, 'version' | 'digest' | 'created_at'>[]> {
  return query<VersionRow>(db).all(
    `select version, digest, created_at from pipeline_version
     where project_id = :project_id and pipeline = :pipeline
       and (:after::text is null or (created_at, version) < (
         select created_at, version from pipeline_version
         where project_id = :project_id and pipeline = :pipeline and version = :after))
     order by created_at desc, version desc limit :limit`,
    { project_id, pipeline, after, limit },
  );
}

/** Definitions are stored by content: equal ones once, for all projects. */
export async function insertDefinition(
  db: Db,
  { digest, body }: { digest: string; body: PipelineDefinition },
): Promise<void> {
  await db.raw('insert into definition (digest, body) values (?, ?) on conflict (digest) do nothing', [
    digest,
    JSON.stringify(body),
  ]);
}
export async function readDefinition(db: Db, digest: string): Promise<PipelineDefinition | undefined> {
  const row = await query<{ body: PipelineDefinition }>(db).first(
    'select body from definition where digest = ?',
    [digest],
  );
  return row?.body;
}

// Aliases: names for versions, which can be moved. `latest` is not an alias: it follows the stored versions.

export interface AliasRow {
  readonly alias: string;
  readonly version: string;
  readonly updated_at: Date;
}

/** @returns undefined if there is no such version */
export function setAlias(
  db: Db,
  { project_id, pipeline, version }: VersionKey,
  alias: string,
): Promise<AliasRow | undefined> {
  return query<AliasRow>(db).first(
    `insert into pipeline_alias (project_id, pipeline, alias, version)
     select project_id, pipeline, ?, version from pipeline_version
     where project_id = ? and pipeline = ? and version = ?
     on conflict (project_id, pipeline, alias) do update
       set version = excluded.version, updated_at = case when pipeline_alias.version = excluded.version
         then pipeline_alias.updated_at else clock_timestamp() end
     returning alias, version, updated_at`,
    [alias, project_id, pipeline, version],
  );
}

/** @returns whether it existed */
export async function deleteAlias(
  db: Db,
  { project_id, pipeline }: Omit<VersionKey, 'version'>,
  alias: string,
): Promise<boolean> {
  const written = await query(db).written(
    'delete from pipeline_alias where project_id = ? and pipeline = ? and alias = ?',
    [project_id, pipeline, alias],
  );
  return written > 0;
}

/** By name; `latest` first. Empty if there is no such pipeline. */
export function listAliases(
  db: Db,
  { project_id, pipeline }: Omit<VersionKey, 'version'>,
): Promise<readonly AliasRow[]> {
  return query<AliasRow>(db).all(
    `(select 'latest' as alias, version, created_at as updated_at from pipeline_version
      where project_id = :project_id and pipeline = :pipeline order by created_at desc limit 1)
     union all
     (select alias, version, updated_at from pipeline_alias
      where project_id = :project_id and pipeline = :pipeline order by alias)`,
    { project_id, pipeline },
  );
}

const most = 1_000;

export async function listPipelineNames(db: Db, projectId: string): Promise<string[]> {
  const rows = await query<{ name: string }>(db).all(
    'select distinct pipeline as name from pipeline_version where project_id = ? order by 1 limit ?',
    [projectId, most],
  );
  return rows.map(({ name }) => name);
}

/** Newest first. */
export async function listVersionNames(db: Db, projectId: string, pipeline: string): Promise<string[]> {
  const rows = await query<{ name: string }>(db).all(
    `select version as name from pipeline_version where project_id = ? and pipeline = ?
     order by created_at desc limit ?`,
    [projectId, pipeline, most],
  );
  return rows.map(({ name }) => name);
}

// Stored pipelines to which other pipelines refer, many in one query, with only those parts that a check reads.

export interface ReferencedRow {
  /** As in the request: `name@version` or `name@alias`. */
  readonly reference: string;
  readonly pipeline: string;
  readonly version: string;
  readonly digest: string;
  readonly job_schema: JsonObject | null;
  readonly has_output: boolean;
  readonly output: Json;
  /** The pipelines that its own steps run. */
  readonly references: readonly string[];
}

/** A version takes precedence over an alias of the same name. Missing ones are left out. */
export function findReferenced(
  db: Db,
  projectId: string,
  references: readonly string[],
): Promise<ReferencedRow[]> {
  return query<ReferencedRow>(db).all(
    `select wanted.reference, wanted.pipeline, found.version, found.digest,
       d.body -> 'job_schema' as job_schema, d.body -> 'output' is not null as has_output, d.body -> 'output' as output,
       coalesce((select json_agg(distinct step ->> 'pipeline') from json_array_elements(d.body -> 'steps') step
         where step ->> 'pipeline' is not null), '[]') as references
     from (
       select reference, split_part(reference, '@', 1) as pipeline,
         substr(reference, strpos(reference, '@') + 1) as name
       from unnest(:references::text[]) as reference
     ) wanted
     cross join lateral (
       select version, digest from (
         select version, digest, 1 as place from pipeline_version
         where project_id = :projectId and pipeline = wanted.pipeline and version = wanted.name
         union all
         select v.version, v.digest, 2 from pipeline_alias a join pipeline_version v using (project_id, pipeline, version)
         where a.project_id = :projectId and a.pipeline = wanted.pipeline and a.alias = wanted.name
         union all
         (select version, digest, 3 from pipeline_version
           where wanted.name = 'latest' and project_id = :projectId and pipeline = wanted.pipeline
           order by created_at desc limit 1)
       ) candidates order by place limit 1
     ) found
     join definition d on d.digest = found.digest`,
    { projectId, references: [...references] },
  );
}
