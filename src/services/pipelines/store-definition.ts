import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import type { Db } from '../../db/connect.ts';
import { insertDefinition } from '../../db/pipeline/definition.ts';
import { digestDefinition } from '../../definitions/definition-digest.ts';

/** Stores a definition by its content; storing an equal one again changes nothing. @returns its digest */
export async function storeDefinition(db: Db, definition: PipelineDefinition): Promise<string> {
  const digest = digestDefinition(definition);
  await insertDefinition(db, { digest, body: definition });
  return digest;
}
