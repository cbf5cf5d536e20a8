/**
 * The JSON Schema of a pipeline definition, for editors. It accepts whatever shape the contract accepts and refuses what it
 * refuses; what takes more than a shape (unknown steps, cycles, expressions) is found by `/v1/pipelines/validate`.
 */
import { z } from 'zod';
import { PipelineDefinition } from '../contracts/pipeline.ts';
import { Json, JsonObject } from '../contracts/primitives.ts';

const rootName = 'PipelineDefinition';

/** @param publicUrl where clients reach the API; without it, the schema's id is relative */
export function createPipelineSchema(publicUrl: string | undefined): JsonObject {
  const { $schema, $defs = {} } = z.toJSONSchema(PipelineDefinition, {
    target: 'draft-2020-12',
    io: 'input',
    override: ({ zodSchema, jsonSchema }) => simplify(zodSchema, jsonSchema),
  });
  const { [rootName]: root, ...parts } = $defs;
  const kept = Object.entries(parts).filter(([name]) => !name.startsWith(inner));
  return JsonObject.parse({
    $schema,
    $id: `${publicUrl ?? ''}/v1/schemas/pipeline.json`,
    ...root,
    $defs: Object.fromEntries(kept),
  });
}

/** How zod names what refers to itself, which is the schema of any JSON value and nothing else. */
const inner = '__schema';

/** Any JSON value is any value: an editor is not told of its six types at every key. */
function simplify(schema: unknown, shown: z.core.JSONSchema.BaseSchema): void {
  if (schema !== Json && schema !== JsonObject) return;
  for (const key of Object.keys(shown)) if (key !== 'id') delete shown[key];
  if (schema === JsonObject) shown.type = 'object';
}
