/** Stored pipelines as other pipelines refer to them, many at once: no more of each than a check looks at. */
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import type { Db } from '../connect.ts';

export interface ReferencedRow {
  /** As it was asked for: `name@version` or `name@alias`. */
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

/** A version goes before an alias of the same name. What does not exist is left out. */
export async function findReferenced(
  db: Db,
  projectId: string,
  references: readonly string[],
): Promise<ReferencedRow[]> {
  const { rows } = await db.raw<{ rows: ReferencedRow[] }>(
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
  return rows;
}
