import type { PipelineDefinition } from '../contracts/pipeline.ts';
import type { JsonObject } from '../contracts/primitives.ts';
import { listOwnSchemas } from '../core/definition/checks/check-schemas.ts';
import { findSchemaFault } from '../core/foreign-schema/schema-limits.ts';

/** Why a schema cannot be used, or null. */
export type VetSchema = (schema: JsonObject) => Promise<string | null>;

/** Different schemas of one definition, and their text: each is compiled in a thread. */
const most = { schemas: 50, characters: 100_000 } as const;
const tooMany = `the definition has more than ${most.schemas} different schemas, or ${most.characters} characters of them`;

/** Compiles the schemas of a definition where that can do no harm. @returns what is wrong with each, null = nothing */
export async function vetOwnSchemas(
  vet: VetSchema,
  definition: PipelineDefinition,
): Promise<(schema: JsonObject) => string | null> {
  const byText = new Map<string, string | null>();
  const bySchema = new Map<JsonObject, string | null>();
  let characters = 0;
  for (const { schema } of listOwnSchemas(definition)) {
    if (findSchemaFault(schema) !== null) continue; // is told already
    const text = JSON.stringify(schema);
    let fault = byText.get(text);
    if (fault === undefined) {
      characters += text.length;
      const isAllowed = byText.size < most.schemas && characters <= most.characters;
      fault = isAllowed ? await vet(schema) : tooMany;
      if (isAllowed) byText.set(text, fault);
    }
    bySchema.set(schema, fault);
  }
  return (schema) => bySchema.get(schema) ?? null;
}
