/**
 * Finds recursion that doubles at every level: a schema that reaches itself through two branches of one anyOf,
 * oneOf or allOf. Checking a value of depth n against it takes 2ⁿ steps. Branches that each name another type
 * are fine: only one of them goes on, as in a schema of JSON itself.
 */
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { isPlainObject } from '../json-type.ts';
import { resolveLocalRef } from './local-ref.ts';

const unions = ['anyOf', 'oneOf', 'allOf'] as const;

export const findExplosiveUnion = (root: JsonObject): string | null => {
  for (const schema of reach(root, root)) {
    for (const keyword of unions) {
      const branches = schema[keyword];
      if (!Array.isArray(branches)) continue;
      const recursing = branches.filter((branch: Json) => reach(root, branch).has(schema));
      if (recursing.length > 1 && !areTypesDistinct(root, recursing)) {
        return `${keyword} with ${recursing.length} branches that lead back to it; give each its own type`;
      }
    }
  }
  return null;
};

/** All objects that a value leads to, itself included: by nesting and by local references. */
const reach = (root: JsonObject, start: Json): Set<JsonObject> => {
  const found = new Set<JsonObject>();
  const open: Json[] = [start];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (Array.isArray(value)) open.push(...value);
    if (!isPlainObject(value) || found.has(value)) continue;
    found.add(value);
    open.push(...Object.values(value));
    for (const ref of [value.$ref, value.$dynamicRef, value.$recursiveRef]) {
      const target = typeof ref === 'string' ? resolveLocalRef(root, ref) : undefined;
      if (target !== undefined) open.push(target);
    }
  }
  return found;
};

const areTypesDistinct = (root: JsonObject, branches: readonly Json[]): boolean => {
  const types = branches.map((branch) => typeOf(root, branch));
  return types.every((type) => type !== null) && new Set(types).size === types.length;
};

/** The one type that a branch accepts; null when it does not say so itself. */
const typeOf = (root: JsonObject, branch: Json): string | null => {
  let schema: Json | undefined = branch;
  for (let steps = 0; steps < 8 && isPlainObject(schema); steps++) {
    if (typeof schema.type === 'string') return schema.type;
    if (typeof schema.$ref !== 'string') return null;
    schema = resolveLocalRef(root, schema.$ref);
  }
  return null;
};
