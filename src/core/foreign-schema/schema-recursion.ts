/**
 * Finds references that make a check explode. Recursion that doubles: a schema that reaches itself through two
 * branches of one anyOf, oneOf or allOf, where a value of depth n takes 2ⁿ steps; branches that each name another
 * type are fine, only one of them goes on, as in a schema of JSON itself. And references that fan out, or come back,
 * without going into the value.
 */
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { isPlainObject } from '../json-type.ts';
import { resolveLocalRef } from './local-ref.ts';
import { findLoops } from './schema-loops.ts';

const unions = ['anyOf', 'oneOf', 'allOf'] as const;
const references = ['$ref', '$dynamicRef', '$recursiveRef'] as const;
/** Schemas in these are checked at the same place of the value as the schema around them. */
const inPlace = ['not', 'if', 'then', 'else', ...unions] as const;
const inPlaceMaps = ['dependentSchemas', 'dependencies'] as const;
const maxChecksInPlace = 10_000;

type Targets = (schema: JsonObject) => readonly Json[];

/** @returns what is wrong, or null */
export function findExplosion(root: JsonObject): string | null {
  const targetsOf = createTargets(root);
  const loops = findLoops(root, (schema) => [...Object.values(schema), ...targetsOf(schema)]);
  return findExplosiveUnion(loops, targetsOf) ?? findFanOut([...loops.keys()], targetsOf);
}

/** What the references of a schema name. */
function createTargets(root: JsonObject): Targets {
  const known = new Map<string, Json | undefined>();
  const resolve = (ref: string): Json | undefined => {
    if (!known.has(ref)) known.set(ref, resolveLocalRef(root, ref));
    return known.get(ref);
  };
  return (schema) =>
    references.flatMap((keyword) => {
      const ref = schema[keyword];
      const target = typeof ref === 'string' ? resolve(ref) : undefined;
      return target === undefined ? [] : [target];
    });
}

function findExplosiveUnion(loops: ReadonlyMap<JsonObject, number>, targetsOf: Targets): string | null {
  for (const [schema, loop] of loops) {
    for (const keyword of unions) {
      const branches = schema[keyword];
      if (!Array.isArray(branches)) continue;
      const recursing = branches.filter(
        (branch: Json) => isPlainObject(branch) && loops.get(branch) === loop,
      );
      if (recursing.length > 1 && !areTypesDistinct(recursing, targetsOf)) {
        return `${keyword} with ${recursing.length} branches that lead back to it; give each its own type`;
      }
    }
  }
  return null;
}

function areTypesDistinct(branches: readonly Json[], targetsOf: Targets): boolean {
  const types = branches.map((branch) => typeOf(branch, targetsOf));
  return types.every((type) => type !== null) && new Set(types).size === types.length;
}

/** The one type that a branch accepts; null when it does not say so itself. */
function typeOf(branch: Json, targetsOf: Targets): string | null {
  let schema: Json | undefined = branch;
  for (let steps = 0; steps < 8 && isPlainObject(schema); steps++) {
    if (typeof schema.type === 'string') return schema.type;
    [schema] = targetsOf(schema);
  }
  return null;
}

function findFanOut(schemas: readonly JsonObject[], targetsOf: Targets): string | null {
  const counts = new Map<JsonObject, number>();
  /** Checks that one place of the value gets from this schema; infinite where it comes back to itself. */
  const count = (schema: JsonObject): number => {
    const known = counts.get(schema);
    if (known !== undefined) return known;
    counts.set(schema, Number.POSITIVE_INFINITY);
    const sum = [...listInPlace(schema), ...targetsOf(schema)]
      .filter(isPlainObject)
      .reduce((total, child) => total + count(child), 1);
    counts.set(schema, sum);
    return sum;
  };
  const most = schemas.reduce((worst, schema) => Math.max(worst, count(schema)), 0);
  if (most <= maxChecksInPlace) return null;
  return Number.isFinite(most)
    ? `references that multiply to more than ${maxChecksInPlace} checks of one place in the value`
    : 'a reference that leads back to itself without going into the value';
}

function listInPlace(schema: JsonObject): readonly Json[] {
  return [
    ...inPlace.flatMap((keyword) => schema[keyword] ?? []),
    ...inPlaceMaps.flatMap((keyword) => {
      const map = schema[keyword];
      return isPlainObject(map) ? Object.values(map) : [];
    }),
  ];
}
