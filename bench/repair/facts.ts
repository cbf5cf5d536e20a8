/** The facts of a schema about a place, for making inputs and mistakes: apart from the code that repairs. */
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { isPlainObject } from '@capstan/core/json/values';
import { resolveLocalRef } from '@capstan/core/schema-types/references';

/** Which branch of a union applies; all when it is not chosen. */
export type Choose = (branches: readonly Json[]) => readonly Json[];
const mostParts = 60;

/** The schemas that apply to one value: behind references, in `allOf`, and in the chosen branches. */
export function partsOf(root: JsonObject, schema: Json | undefined, choose: Choose): readonly JsonObject[] {
  const parts = new Set<JsonObject>(isPlainObject(schema) ? [schema] : []);
  for (const part of parts) {
    const { $ref, allOf, anyOf, oneOf } = part;
    const next = [
      typeof $ref === 'string' ? resolveLocalRef(root, $ref) : undefined,
      ...(Array.isArray(allOf) ? allOf : []),
      ...(Array.isArray(anyOf) ? choose(anyOf) : []),
      ...(Array.isArray(oneOf) ? choose(oneOf) : []),
    ];
    for (const one of next) if (isPlainObject(one) && parts.size < mostParts) parts.add(one);
  }
  return [...parts];
}

export function propertiesIn(parts: readonly JsonObject[]): Readonly<Record<string, Json>> {
  return Object.assign({}, ...parts.map(({ properties }) => (isPlainObject(properties) ? properties : {})));
}

export function requiredIn(parts: readonly JsonObject[]): readonly string[] {
  const names = parts.flatMap(({ required }) => (Array.isArray(required) ? required : []));
  return [...new Set(names.filter((name) => typeof name === 'string'))];
}

/** The values that one of the parts lists; empty when none does. */
export function choicesIn(parts: readonly JsonObject[]): readonly Json[] {
  for (const { const: constant, enum: listed } of parts) {
    if (constant !== undefined) return [constant];
    if (Array.isArray(listed)) return listed;
  }
  return [];
}

export function childSchema(parts: readonly JsonObject[], key: string | number): readonly Json[] {
  return parts.flatMap(({ properties, items, additionalProperties }) => {
    if (typeof key === 'number') return items === undefined || Array.isArray(items) ? [] : [items];
    if (isPlainObject(properties) && properties[key] !== undefined) return [properties[key]];
    return isPlainObject(additionalProperties) ? [additionalProperties] : [];
  });
}
