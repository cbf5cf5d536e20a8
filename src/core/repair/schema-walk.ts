/**
 * The schemas that may apply at a place of a value. Every branch is followed, no condition is decided and no pattern is
 * run, so the result has too many rather than too few. Repairs made from them are validated afterwards.
 */
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { resolveLocalRef } from '../foreign-schema.ts';
import { isPlainObject, splitPointer } from '../json/values.ts';

const mostSchemas = 200;
const branchKeywords = ['allOf', 'anyOf', 'oneOf'] as const;
const referenceKeywords = ['$ref', '$dynamicRef', '$recursiveRef'] as const;
const singleKeywords = ['then', 'else'] as const;
const itemKeywords = ['items', 'additionalItems', 'contains', 'unevaluatedItems'] as const;
const memberKeywords = ['additionalProperties', 'unevaluatedProperties'] as const;

/** Also empty when the schema is too large. */
export function schemasAt(root: JsonObject, pointer: string): readonly JsonObject[] {
  return splitPointer(pointer).reduce<readonly JsonObject[]>(
    (schemas, segment) =>
      expand(
        root,
        schemas.flatMap((schema) => step(schema, segment)),
      ),
    expand(root, [root]),
  );
}

/** Adds all schemas that references and branches apply at the same place. */
function expand(root: JsonObject, start: readonly JsonObject[]): readonly JsonObject[] {
  const found = new Set(start);
  for (const schema of found) {
    for (const next of inPlace(root, schema)) found.add(next);
    if (found.size > mostSchemas) return [];
  }
  return [...found];
}

function inPlace(root: JsonObject, schema: JsonObject): readonly JsonObject[] {
  const { dependentSchemas } = schema;
  const branches = branchKeywords.flatMap((keyword) => listOf(schema[keyword]));
  const singles = singleKeywords.map((keyword) => schema[keyword]);
  const targets = referenceKeywords.map((keyword) => {
    const ref = schema[keyword];
    return typeof ref === 'string' ? resolveLocalRef(root, ref) : undefined;
  });
  const dependent = isPlainObject(dependentSchemas) ? Object.values(dependentSchemas) : [];
  return [...branches, ...singles, ...targets, ...dependent].filter(isPlainObject);
}

function step(schema: JsonObject, segment: string): readonly JsonObject[] {
  const { properties, patternProperties, prefixItems, items } = schema;
  if (isPlainObject(properties) && Object.hasOwn(properties, segment)) {
    return [properties[segment], ...patternsOf(patternProperties)].filter(isPlainObject);
  }
  const members = memberKeywords.map((keyword) => schema[keyword]);
  const isIndex = /^\d+$/.test(segment);
  const listed = isIndex ? [...itemKeywords.map((keyword) => schema[keyword])] : [];
  const placed = isIndex ? [listOf(prefixItems)[Number(segment)], listOf(items)[Number(segment)]] : [];
  return [...members, ...patternsOf(patternProperties), ...listed, ...placed].filter(isPlainObject);
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

function patternsOf(value: Json | undefined): readonly Json[] {
  return isPlainObject(value) ? Object.values(value) : [];
}

/** The keys that these schemas of an object name. */
export function namesIn(schemas: readonly JsonObject[]): readonly string[] {
  return [
    ...new Set(
      schemas.flatMap(({ properties }) => (isPlainObject(properties) ? Object.keys(properties) : [])),
    ),
  ];
}

/** Whether these schemas also name keys by patterns, which are not run here. */
export function haveNamePatterns(schemas: readonly JsonObject[]): boolean {
  return schemas.some(({ patternProperties }) => isPlainObject(patternProperties));
}

/** Whether these schemas of an object know a key: by its name, by a pattern, or by a rule for other keys. */
export function knowsKey(schemas: readonly JsonObject[], name: string): boolean {
  const isMap = schemas.some((schema) => memberKeywords.some((keyword) => isPlainObject(schema[keyword])));
  return isMap || haveNamePatterns(schemas) || namesIn(schemas).includes(name);
}

/** Whether the types of these schemas allow a value of this kind. */
export function mayHold(schemas: readonly JsonObject[], value: Json): boolean {
  const types = schemas.flatMap(({ type }) => (type === undefined ? [] : [type]));
  return types.length === 0 || types.flat().some((type) => isOfType(value, type));
}

function isOfType(value: Json, type: Json): boolean {
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isPlainObject(value);
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}
