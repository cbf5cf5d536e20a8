/**
 * Untrusted JSON Schemas: what they may contain, and what their references name. Sizes are limited here. The work of a
 * check is limited where it is done (schemas/work-meter.ts), so unions may lead back to themselves and references may
 * multiply. The number of instructions of a pattern is estimated without compiling it: counted repetition multiplies
 * what it repeats, so seven characters may mean a thousand instructions.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { extendPointer, isList, isPlainObject, splitPointer } from './json/values.ts';

// Limits of an untrusted JSON Schema, checked before it is compiled: compiling it must stay cheap. It has only
// local references and no embedded documents.

export const schemaLimits = {
  depth: 32,
  /** Without texts, numbers and the like in an enum. */
  nodes: 2_000,
  enumValues: 5_000,
  /** Instructions of all its patterns together. */
  patternSize: 50_000,
} as const;

interface SchemaWalk {
  nodes: number;
  patternSize: number;
}

/** Keywords whose own keys are names, not keywords. */
export const maps: ReadonlySet<string> = new Set([
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
  return walk(schema, root, { nodes: 0, patternSize: 0 }) ?? findEndlessReference(schema);
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
    if (key === 'enum' && !isMap && Array.isArray(child) && !child.some(isContainer)) continue;
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

function isContainer(value: Json): boolean {
  return typeof value === 'object' && value !== null;
}

function findKeywordFault(schema: JsonObject, isRoot: boolean): string | null {
  const { $id, $async, enum: values } = schema;
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
  return null;
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

const references = ['$ref', '$dynamicRef', '$recursiveRef'] as const;
/** Keywords whose schemas apply to the same value as the surrounding schema. */
const inPlace = ['not', 'if', 'then', 'else', 'anyOf', 'oneOf', 'allOf'] as const;
const inPlaceMaps = ['dependentSchemas', 'dependencies'] as const;

/** Finds a reference that leads back to itself without going into the value; a check of it would never end. */
function findEndlessReference(root: JsonObject): string | null {
  const targetsOf = createTargets(root);
  const known = new Map<JsonObject, 'open' | 'ends'>();
  const ends = (schema: JsonObject): boolean => {
    const state = known.get(schema);
    if (state !== undefined) return state === 'ends';
    known.set(schema, 'open');
    const doEnd = [...listInPlace(schema), ...targetsOf(schema)].filter(isPlainObject).every(ends);
    if (doEnd) known.set(schema, 'ends');
    return doEnd;
  };
  return listObjects(root).every(ends)
    ? null
    : 'a reference that leads back to itself without going into the value';
}

type Targets = (schema: JsonObject) => readonly Json[];

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

function listInPlace(schema: JsonObject): readonly Json[] {
  return [
    ...inPlace.flatMap((keyword) => schema[keyword] ?? []),
    ...inPlaceMaps.flatMap((keyword) => {
      const map = schema[keyword];
      return isPlainObject(map) ? Object.values(map) : [];
    }),
  ];
}

function listObjects(value: Json): readonly JsonObject[] {
  if (value === null || typeof value !== 'object') return [];
  const inside = Object.values(value).flatMap(listObjects);
  return isPlainObject(value) ? [value, ...inside] : inside;
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
