/**
 * Untrusted JSON Schemas: what they may contain, and what their references name. Sizes are limited here. The work of a
 * check is limited where it is done (schemas/work-meter.ts), so unions may lead back to themselves and references may
 * multiply. The number of instructions of a pattern is estimated without compiling it: counted repetition multiplies
 * what it repeats, so seven characters may mean a thousand instructions.
 */
import type { Json, JsonObject } from './contracts/primitives.ts';
import { extendPointer, isList, isPlainObject } from './json/values.ts';
import {
  ReferenceFault,
  referenceKeywords,
  resolveLocalRef,
  schemaMaps,
  withLocalReferences,
} from './schema-types/references.ts';

// Limits of an untrusted JSON Schema, checked before it is compiled: compiling it must stay cheap.

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

/** @returns the fault and its pointer, or null */
export function findSchemaFault(schema: JsonObject): string | null {
  const root = { pointer: '', depth: 1, isMap: false };
  return walk(schema, root, { nodes: 0, patternSize: 0 }) ?? findReferenceFault(schema);
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
    const fault = findKeywordFault(value) ?? findPatternFault(value, state);
    if (fault !== null) return `${fault} at ${at}`;
  }
  for (const [key, child] of Object.entries(value)) {
    if (key === 'enum' && !isMap && Array.isArray(child) && !child.some(isContainer)) continue;
    const position = {
      pointer: extendPointer(pointer, key),
      depth: depth + 1,
      isMap: !isMap && schemaMaps.has(key),
    };
    const fault = walk(child, position, state);
    if (fault !== null) return fault;
  }
  return null;
}

function isContainer(value: Json): boolean {
  return typeof value === 'object' && value !== null;
}

function findKeywordFault({ $async, enum: values }: JsonObject): string | null {
  if ($async !== undefined) return '$async, which is not JSON Schema';
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

function findReferenceFault(schema: JsonObject): string | null {
  try {
    return findEndlessReference(withLocalReferences(schema));
  } catch (error) {
    if (error instanceof ReferenceFault) return error.message;
    throw error;
  }
}

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
    referenceKeywords.flatMap((keyword) => {
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

// Schemas so simple that they compile for certain, and soon: most that capabilities publish.

const simpleTypes: ReadonlySet<Json> = new Set<Json>([
  'null',
  'boolean',
  'integer',
  'number',
  'string',
  'array',
  'object',
]);
/** Objects in it, each with a few keywords. */
const mostSimple = 100;

type IsSimple = (value: Json) => boolean;

const isText: IsSimple = (value) => typeof value === 'string';
const isNumber: IsSimple = (value) => typeof value === 'number';
const isSize: IsSimple = (value) => Number.isSafeInteger(value) && Number(value) >= 0;
const isSchema: IsSimple = (value) => isPlainObject(value) && hasSimpleKeywords(value);

/** Further keywords that are allowed, in both drafts; a schema with any other keyword is not simple. */
const simpleKeywords: ReadonlyMap<string, IsSimple> = new Map([
  ['type', (value) => simpleTypes.has(value)],
  ['title', isText],
  ['description', isText],
  ['properties', (value) => isPlainObject(value) && Object.values(value).every(isSchema)],
  ['required', (value) => isList(value) && value.every(isText) && new Set(value).size === value.length],
  ['additionalProperties', (value) => typeof value === 'boolean' || isSchema(value)],
  ['items', isSchema],
  ...['minimum', 'maximum'].map((keyword): [string, IsSimple] => [keyword, isNumber]),
  ...['minLength', 'maxLength', 'minItems', 'maxItems'].map((keyword): [string, IsSimple] => [
    keyword,
    isSize,
  ]),
]);

function hasSimpleKeywords(schema: JsonObject): boolean {
  return Object.entries(schema).every(([keyword, value]) => simpleKeywords.get(keyword)?.(value) ?? false);
}

/** @param schema without a fault (`findSchemaFault`) */
export function isSimpleSchema(schema: JsonObject): boolean {
  return listObjects(schema).length <= mostSimple && hasSimpleKeywords(schema);
}

// Schemas that any process compiles in a few milliseconds. The others are compiled in a thread only.

const mostLight = 300;
/** What is evaluated by other parts of a schema is merged, part by part. */
const timesUnevaluated = 3;
const weightOfPattern = 10;
const instructionsPerWeight = 5;
/** From here on, a list of plain values is compiled to a loop over them. */
const loopFrom = 200;
/** They limit no value. */
const annotations: ReadonlySet<string> = new Set(['title', 'description', 'default', 'examples', '$comment']);

interface Weighing {
  weight: number;
  hasUnevaluated: boolean;
}

/** @param schema without a fault (`findSchemaFault`) */
export function isLightSchema(schema: JsonObject): boolean {
  const found: Weighing = { weight: 0, hasUnevaluated: false };
  weigh(schema, false, found);
  return found.weight * (found.hasUnevaluated ? timesUnevaluated : 1) <= mostLight;
}

/** @param isMap whether the keys of the value are names */
function weigh(value: Json, isMap: boolean, found: Weighing): void {
  found.weight += 1;
  if (isList(value)) {
    const isLoop = value.length >= loopFrom && !value.some(isContainer);
    if (!isLoop) for (const item of value) weigh(item, false, found);
  } else if (isPlainObject(value)) {
    for (const [key, child] of Object.entries(value)) {
      if (isMap) weigh(child, false, found);
      else weighKeyword(key, child, found);
    }
  }
}

function weighKeyword(keyword: string, value: Json, found: Weighing): void {
  if (annotations.has(keyword)) return;
  if (keyword.startsWith('unevaluated')) found.hasUnevaluated = true;
  if (keyword === 'pattern' && typeof value === 'string') weighPattern(value, found);
  if (keyword === 'patternProperties' && isPlainObject(value)) {
    for (const pattern of Object.keys(value)) weighPattern(pattern, found);
  }
  weigh(value, schemaMaps.has(keyword), found);
}

function weighPattern(pattern: string, found: Weighing): void {
  found.weight += weightOfPattern + estimatePatternSize(pattern) / instructionsPerWeight;
}
