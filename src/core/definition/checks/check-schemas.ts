/** The JSON Schemas that a definition brings along: of its job, and of what people answer. */
import type { PipelineDefinition } from '../../../contracts/pipeline.ts';
import type { JsonObject } from '../../../contracts/primitives.ts';
import { findSchemaFault } from '../../foreign-schema/schema-limits.ts';
import { typeOfSchema } from '../../schema-types/schema-type.ts';
import { isKind, kinds } from '../../schema-types/value-type.ts';
import type { DefinitionFacts } from './definition-facts.ts';
import type { DefinitionFinding } from './finding.ts';

export interface SchemaChecks {
  readonly findings: readonly DefinitionFinding[];
  /** Those that may be read. */
  readonly isSound: (schema: JsonObject) => boolean;
}

interface OwnSchema {
  readonly schema: JsonObject;
  readonly pointer: string;
}

export function listOwnSchemas({ job_schema, steps }: PipelineDefinition): readonly OwnSchema[] {
  return [
    ...(job_schema === undefined ? [] : [{ schema: job_schema, pointer: '/job_schema' }]),
    ...steps.flatMap(({ review }, index) =>
      review?.schema === undefined
        ? []
        : [{ schema: review.schema, pointer: `/steps/${index}/review/schema` }],
    ),
  ];
}

export function checkSchemas(
  definition: PipelineDefinition,
  { schemaFaultOf = () => null }: Pick<DefinitionFacts, 'schemaFaultOf'>,
): SchemaChecks {
  const sound = new Set<JsonObject>();
  const findings = listOwnSchemas(definition).flatMap(({ schema, pointer }): DefinitionFinding[] => {
    const fault = findSchemaFault(schema) ?? schemaFaultOf(schema);
    if (fault !== null) return [invalid(pointer, fault)];
    sound.add(schema);
    if (schema !== definition.job_schema || isKind(typeOfSchema(schema), kinds.object)) return [];
    return [invalid(pointer, 'a job is an object, but the schema allows none')];
  });
  return { findings, isSound: (schema) => sound.has(schema) };
}

function invalid(pointer: string, message: string): DefinitionFinding {
  return {
    severity: 'error',
    code: 'schema_invalid',
    pointer,
    message: `the schema cannot be used: ${message}`,
  };
}
