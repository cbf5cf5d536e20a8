/**
 * Untrusted JSON Schemas: what they may contain, and what their references name. Two kinds of references make a check
 * explode. The first is doubling recursion: a schema that reaches itself through two branches of one anyOf, oneOf or
 * allOf, where a value of depth n takes 2ⁿ steps. Branches that each name another type are fine, because only one of
 * them continues, as in a schema of JSON itself. The second is references that fan out or cycle without descending into
 * the value. The number of instructions of a pattern is estimated without compiling it: counted repetition multiplies
 * what it repeats, so seven characters may mean a thousand instructions.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { extendPointer, isList, isPlainObject, splitPointer } from './json/values.ts';

// Limits of an untrusted JSON Schema, checked before it is compiled: compiling and running it must stay cheap. It has
// only local references, no embedded documents, and nothing that makes a check's work grow faster than the value.

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

/** Keywords whose own keys are names, not keywords. */
const maps: ReadonlySet<string> = new Set([
  '$defs',
  'definitions',
  'dependencies',
  'dependentSchemas',
  'patternProperties',
  'properties',
]);

/** @returns the fault and its pointer, or null */
export function findSchemaFault(schema: JsonObject): string | null {
  const root = { pointer: '', depth: 1, isMap: false };
  return walk(schema, root, { nodes: 0, patternSize: 0 }) ?? findExplosion(schema);
}

interface SchemaPosition {
  readonly pointer: string;
  readonly depth: number;
  /** Whether the keys of the value are names. */
  readonly isMap: boolean;
}

function walk(value: Json, { pointer, depth, isMap }: SchemaPosition, state: SchemaWalk): string | null {
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
    const position = {
      pointer: extendPointer(pointer, key),
      depth: depth + 1,
      isMap: !isMap && maps.has(key),
    };
    const fault = walk(child, position, state);
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

const unions = ['anyOf', 'oneOf', 'allOf'] as const;
const references = ['$ref', '$dynamicRef', '$recursiveRef'] as const;
/** Keywords whose schemas apply to the same value as the surrounding schema. */
const inPlace = ['not', 'if', 'then', 'else', ...unions] as const;
const inPlaceMaps = ['dependentSchemas', 'dependencies'] as const;
const maxChecksInPlace = 10_000;

type Targets = (schema: JsonObject) => readonly Json[];

/** @returns the fault, or null */
function findExplosion(root: JsonObject): string | null {
  const targetsOf = createTargets(root);
  const loops = findLoops(root, (schema) => [...Object.values(schema), ...targetsOf(schema)]);
  return findExplosiveUnion(loops, targetsOf) ?? findFanOut([...loops.keys()], targetsOf);
}

/** Resolves the references of a schema. */
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

/** The one type that a branch accepts; null when the branch does not state it. */
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
  /** The number of checks that this schema applies to one value; infinite when it cycles back to itself. */
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

/**
 * All objects reachable from the root, each with the number of its strongly connected component: two have the same
 * number when each leads to the other. (Tarjan's algorithm, in linear time.)
 * @param next objects that an object leads to; lists stand for their items
 */
function findLoops(
  root: JsonObject,
  next: (value: JsonObject) => readonly Json[],
): ReadonlyMap<JsonObject, number> {
  const loops = new Map<JsonObject, number>();
  const order = new Map<JsonObject, number>();
  const open: JsonObject[] = [];

  /** @returns the earliest object, by its order, that this one leads back to */
  const visit = (value: JsonObject): number => {
    const index = order.size;
    order.set(value, index);
    open.push(value);
    let earliest = index;
    for (const child of flatten(next(value))) {
      if (!order.has(child)) earliest = Math.min(earliest, visit(child));
      else if (!loops.has(child)) earliest = Math.min(earliest, order.get(child) ?? index);
    }
    if (earliest === index) {
      for (const member of open.splice(open.indexOf(value))) loops.set(member, index);
    }
    return earliest;
  };

  visit(root);
  return loops;
}

function flatten(values: readonly Json[]): readonly JsonObject[] {
  return values.flatMap((value) => {
    if (Array.isArray(value)) return flatten(value);
    return isPlainObject(value) ? [value] : [];
  });
}

/** An escape, a class, a count, or one character. An unclosed class extends to the end. */
const token = /\\[\s\S]|\[(?:\\[\s\S]|[^\]\\])*\]?|\{(\d+)(?:,(\d*))?\}|[\s\S]/g;

/**
 * Estimates the number of instructions that a pattern compiles to, without compiling it: counted repetition multiplies
 * what it repeats, so seven characters may mean a thousand instructions.
 */
export function estimatePatternSize(pattern: string): number {
  /** Sizes of the parts before each open group. */
  const outer: number[] = [];
  let size = 0;
  let atom = 0;
  for (const [text, least, most] of pattern.matchAll(token)) {
    if (text === '(') {
      outer.push(size);
      size = 0;
      atom = 1;
    } else if (text === ')' && outer.length > 0) {
      atom = size + 2;
      size = (outer.pop() ?? 0) + atom;
    } else if (least !== undefined) {
      const repeated = atom * Math.max(1, Number(least) + 1, Number(most ?? 0));
      size += repeated - atom;
      atom = repeated;
    } else {
      atom = 1;
      size += 1;
    }
  }
  return outer.reduce((sum, before) => sum + before, size);
}

/** The target of `#`, `#/a/b` or `#anchor` inside a schema; undefined when it is absent or not local. */
export function resolveLocalRef(root: JsonObject, ref: string): Json | undefined {
  if (!ref.startsWith('#')) return undefined;
  const fragment = decodeFragment(ref.slice(1));
  if (fragment === '') return root;
  return fragment.startsWith('/') ? walkPointer(root, fragment) : findAnchor(root, fragment);
}

function decodeFragment(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}

function walkPointer(root: JsonObject, pointer: string): Json | undefined {
  let value: Json | undefined = root;
  for (const segment of splitPointer(pointer)) {
    if (value === undefined || value === null || typeof value !== 'object') return undefined;
    if (isList(value)) value = value[Number(segment)];
    else value = Object.hasOwn(value, segment) ? value[segment] : undefined;
  }
  return value;
}

function findAnchor(value: Json, anchor: string): JsonObject | undefined {
  if (value === null || typeof value !== 'object') return undefined;
  if (isPlainObject(value) && (value.$anchor === anchor || value.$dynamicAnchor === anchor)) return value;
  for (const child of Object.values(value)) {
    const found = findAnchor(child, anchor);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Whether a schema is read as draft 07; any other is read as 2020-12. */
export function isDraft7({ $schema }: JsonObject): boolean {
  return typeof $schema === 'string' && /^https?:\/\/json-schema\.org\/draft-0[67]\/schema#?$/.test($schema);
}
