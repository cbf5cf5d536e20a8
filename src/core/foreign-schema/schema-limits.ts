/**
 * What a stranger's JSON Schema may be, checked before it is compiled: compiling and running it must stay cheap.
 * Only local references, no embedded documents, nothing that makes the work of a check grow faster than the value.
 */
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { extendPointer } from '../json-pointer.ts';
import { isPlainObject } from '../json-type.ts';
import { estimatePatternSize } from './pattern-size.ts';
import { findExplosion } from './schema-recursion.ts';

export const schemaLimits = {
  depth: 32,
  nodes: 2_000,
  enumValues: 500,
  uniqueItems: 1_000,
  /** Instructions of all its patterns together. */
  patternSize: 50_000,
} as const;

interface SchemaWalk {
  nodes: number;
  patternSize: number;
}

/** Keywords whose keys are names, not keywords. */
const maps: ReadonlySet<string> = new Set([
  '$defs',
  'definitions',
  'dependencies',
  'dependentSchemas',
  'patternProperties',
  'properties',
]);

/** @returns what is wrong and where, or null */
export function findSchemaFault(schema: JsonObject): string | null {
  return walk(schema, '', 1, false, { nodes: 0, patternSize: 0 }) ?? findExplosion(schema);
}

function walk(value: Json, pointer: string, depth: number, isMap: boolean, state: SchemaWalk): string | null {
  const at = pointer === '' ? '/' : pointer;
  state.nodes += 1;
  if (state.nodes > schemaLimits.nodes) return `more than ${schemaLimits.nodes} values, the most allowed`;
  if (value === null || typeof value !== 'object') return null;
  if (depth > schemaLimits.depth) return `nested deeper than ${schemaLimits.depth} levels at ${at}`;
  if (isPlainObject(value) && !isMap) {
    const fault = findKeywordFault(value, pointer === '') ?? findPatternFault(value, state);
    if (fault !== null) return `${fault} at ${at}`;
  }
  for (const [key, child] of Object.entries(value)) {
    const isChildMap = !isMap && maps.has(key);
    const fault = walk(child, extendPointer(pointer, key), depth + 1, isChildMap, state);
    if (fault !== null) return fault;
  }
  return null;
}

function findKeywordFault(schema: JsonObject, isRoot: boolean): string | null {
  const { $id, $async, enum: values, uniqueItems, maxItems } = schema;
  for (const keyword of ['$ref', '$dynamicRef', '$recursiveRef'] as const) {
    const ref = schema[keyword];
    if (typeof ref === 'string' && !ref.startsWith('#')) {
      return `${keyword} ${JSON.stringify(ref)} leaves the document; only references that start with # are allowed`;
    }
  }
  if ($async !== undefined) return '$async, which is not JSON Schema';
  if (!isRoot && typeof $id === 'string') return '$id below the root';
  if (Array.isArray(values) && values.length > schemaLimits.enumValues) {
    return `enum with ${values.length} values, at most ${schemaLimits.enumValues} allowed`;
  }
  const isBounded = typeof maxItems === 'number' && maxItems <= schemaLimits.uniqueItems;
  return uniqueItems === true && !isBounded
    ? `uniqueItems without maxItems, or with more than ${schemaLimits.uniqueItems}`
    : null;
}

function findPatternFault({ pattern, patternProperties }: JsonObject, state: SchemaWalk): string | null {
  if (typeof pattern === 'string') state.patternSize += estimatePatternSize(pattern);
  if (isPlainObject(patternProperties)) {
    for (const key of Object.keys(patternProperties)) state.patternSize += estimatePatternSize(key);
  }
  return state.patternSize > schemaLimits.patternSize
    ? `patterns of more than ${schemaLimits.patternSize} instructions; counted repetition multiplies`
    : null;
}
