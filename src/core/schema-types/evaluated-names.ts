import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { isList, isPlainObject } from '../json-type.ts';

const lists = ['allOf', 'anyOf', 'oneOf'] as const;
const singles = ['if', 'then', 'else'] as const;

/**
 * The keys that `unevaluatedProperties: false` allows: those that the schema, or one that is applied to the same object,
 * says anything about. Null when they cannot be told one by one.
 */
export function listEvaluatedNames(
  root: JsonObject,
  resolve: (ref: string) => Json | undefined,
): ReadonlySet<string> | null {
  const names = new Set<string>();
  const seen = new Set<JsonObject>();
  /** Whether all its keys can be told. */
  const collect = (schema: Json | undefined): boolean => {
    if (!isPlainObject(schema) || seen.has(schema)) return true;
    seen.add(schema);
    const isOpen =
      (schema.additionalProperties ?? false) !== false ||
      (schema !== root && (schema.unevaluatedProperties ?? false) !== false) ||
      isPlainObject(schema.patternProperties) ||
      schema.$dynamicRef !== undefined ||
      schema.$recursiveRef !== undefined;
    if (isOpen) return false;
    if (isPlainObject(schema.properties)) for (const name of Object.keys(schema.properties)) names.add(name);
    return listApplied(schema, resolve).every(collect);
  };
  return collect(root) ? names : null;
}

function listApplied(schema: JsonObject, resolve: (ref: string) => Json | undefined): (Json | undefined)[] {
  const { $ref, dependentSchemas, dependencies } = schema;
  return [
    typeof $ref === 'string' ? resolve($ref) : undefined,
    ...singles.map((keyword) => schema[keyword]),
    ...lists.flatMap((keyword) => {
      const branches = schema[keyword] ?? null;
      return isList(branches) ? branches : [];
    }),
    ...[dependentSchemas, dependencies].flatMap((map) => (isPlainObject(map) ? Object.values(map) : [])),
  ];
}
