/** Names that a mistyped one is compared with. */
import type { Db } from '../connect.ts';

const most = 1_000;

export async function listPipelineNames(db: Db, projectId: string): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { name: string }[] }>(
    'select distinct pipeline as name from pipeline_version where project_id = ? order by 1 limit ?',
    [projectId, most],
  );
  return rows.map(({ name }) => name);
}

/** Newest first. */
export async function listVersionNames(db: Db, projectId: string, pipeline: string): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { name: string }[] }>(
    `select version as name from pipeline_version where project_id = ? and pipeline = ?
     order by created_at desc limit ?`,
    [projectId, pipeline, most],
  );
  return rows.map(({ name }) => name);
}
