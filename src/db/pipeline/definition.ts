/** Definitions by content: equal ones are stored once, whoever submits them. */
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import type { Db } from '../connect.ts';

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
  const { rows } = await db.raw<{ rows: { body: PipelineDefinition }[] }>(
    'select body from definition where digest = ?',
    [digest],
  );
  return rows[0]?.body;
}
