/**
 * The schemas that may apply at a place of a value. No condition is decided and no pattern is run, and of a union every
 * branch is followed that the value may have been written for, so the result has too many rather than too few. Repairs
 * made from them are validated afterwards.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { extendPointer, isList, isPlainObject, splitPointer } from '../json/values.ts';
import { referenceKeywords, resolveLocalRef, withLocalReferences } from '../schema-types/references.ts';

const mostSchemas = 200;
/** Schemas of a branch that are looked at to see what it is for. */
const mostInBranch = 20;
export const unionKeywords = ['anyOf', 'oneOf'] as const;
const singleKeywords = ['then', 'else'] as const;
const itemKeywords = ['items', 'additionalItems', 'contains', 'unevaluatedItems'] as const;
const memberKeywords = ['additionalProperties', 'unevaluatedProperties'] as const;

/** A value of the input, the schemas that may apply to it, and the way to it. */
export interface InputPlace {
  readonly pointer: string;
  readonly value: Json;
  readonly schemas: readonly JsonObject[];
  /** The last segment of the pointer. */
  readonly key: string;
  readonly parent: InputPlace | null;
}

export interface Places {
  readonly at: (pointer: string) => InputPlace | undefined;
  readonly child: (place: InputPlace, key: string) => InputPlace | undefined;
  /** The schemas of a key that the object does not have. */
  readonly schemasOf: (place: InputPlace, key: string) => readonly JsonObject[];
}

/** The branches of a schema's unions to follow for a value; without a value, for a key that is absent. */
export type ChooseBranches = (resolve: FollowRef, schema: JsonObject, value?: Json) => readonly JsonObject[];

export function createPlaces(schema: JsonObject, input: Json, choose: ChooseBranches = branchesFor): Places {
  const root = withLocalReferences(schema);
  const expand = (start: readonly JsonObject[], value?: Json): readonly JsonObject[] =>
    expandWith((one) => [...always(resolve, one), ...choose(resolve, one, value)], start);
  const known = new Map<string, InputPlace | undefined>();
  const resolve = createResolver(root);
  const schemasOf = (place: InputPlace, key: string, value?: Json): readonly JsonObject[] =>
    expand(
      place.schemas.flatMap((schema) => step(schema, key)),
      value,
    );
  const child = (parent: InputPlace, key: string): InputPlace | undefined => {
    const value = memberOf(parent.value, key);
    if (value === undefined) return undefined;
    const pointer = extendPointer(parent.pointer, key);
    if (!known.has(pointer)) {
      known.set(pointer, { pointer, value, key, parent, schemas: schemasOf(parent, key, value) });
    }
    return known.get(pointer);
  };
  const top: InputPlace = {
    pointer: '',
    value: input,
    key: '',
    parent: null,
    schemas: expand([root], input),
  };
  const at = (pointer: string): InputPlace | undefined =>
    splitPointer(pointer).reduce<InputPlace | undefined>((place, key) => place && child(place, key), top);
  return { at, child, schemasOf };
}

function memberOf(value: Json, key: string): Json | undefined {
  if (isList(value)) return /^\d+$/.test(key) ? value[Number(key)] : undefined;
  return isPlainObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/** Keys of a container, as segments of a pointer. */
export function keysOf(value: Json): readonly string[] {
  return value !== null && typeof value === 'object' ? Object.keys(value) : [];
}

export type FollowRef = (ref: string) => Json | undefined;

/** Resolves references inside the document, each once. */
function createResolver(root: JsonObject): FollowRef {
  const known = new Map<string, Json | undefined>();
  return (ref) => {
    if (!known.has(ref)) known.set(ref, resolveLocalRef(root, ref));
    return known.get(ref);
  };
}

/** Adds all schemas that references and branches apply at the same place. */
function expandWith(
  nextOf: (schema: JsonObject) => readonly JsonObject[],
  start: readonly JsonObject[],
): readonly JsonObject[] {
  const found = new Set(start);
  for (const schema of found) {
    for (const next of nextOf(schema)) found.add(next);
    if (found.size > mostSchemas) break;
  }
  return [...found];
}

/** The schemas that apply at the same place whatever branch is meant, and those of conditions. */
function always(resolve: FollowRef, schema: JsonObject): readonly JsonObject[] {
  const { dependentSchemas, dependencies } = schema;
  const targets = referenceKeywords.map((keyword) => {
    const ref = schema[keyword];
    return typeof ref === 'string' ? resolve(ref) : undefined;
  });
  return [
    ...listOf(schema.allOf),
    ...singleKeywords.map((keyword) => schema[keyword]),
    ...targets,
    ...[dependentSchemas, dependencies].flatMap((map) => (isPlainObject(map) ? Object.values(map) : [])),
  ].filter(isPlainObject);
}

/** The branches of its unions that the value fits best by kind, discriminator and keys. */
function branchesFor(resolve: FollowRef, schema: JsonObject, value?: Json): readonly JsonObject[] {
  return unionKeywords.flatMap((keyword) => {
    const branches = listOf(schema[keyword]).filter(isPlainObject);
    if (value === undefined || branches.length < 2) return branches;
    const ranks = branches.map((branch) => rank(resolve, branch, value));
    const best = ranks.reduce((most, one) => Math.max(most, one), Number.NEGATIVE_INFINITY);
    return branches.filter((_, at) => (ranks[at] ?? best) >= best - 1);
  });
}

/** A branch, and the schemas that hold with it; at most twenty. */
export function partsOf(resolve: FollowRef, branch: JsonObject): readonly JsonObject[] {
  const parts = new Set([branch]);
  for (const part of parts) {
    for (const next of always(resolve, part)) if (parts.size < mostInBranch) parts.add(next);
  }
  return [...parts];
}

function rank(resolve: FollowRef, branch: JsonObject, value: Json): number {
  const schemas = partsOf(resolve, branch);
  const shape = shapeOf(value);
  const shapes = new Set(schemas.flatMap(typesIn).map((type) => shapeNames[String(type)]));
  if (shapes.size > 0 && !shapes.has(shape)) return -100;
  if (!isPlainObject(value)) return 0;
  const names = new Set(namesIn(schemas));
  return rateKeys(names, schemas, value) + rateDiscriminators(schemas, value);
}

/** Keys in common, less those that are required and missing. */
export function rateKeys(
  names: ReadonlySet<string>,
  schemas: readonly JsonObject[],
  value: JsonObject,
): number {
  const known = Object.keys(value).filter((key) => names.has(key)).length;
  return known - requiredIn(schemas).filter((key) => !Object.hasOwn(value, key)).length;
}

function rateDiscriminators(schemas: readonly JsonObject[], value: JsonObject): number {
  let rate = 0;
  for (const { properties } of schemas) {
    if (!isPlainObject(properties)) continue;
    for (const [key, schema] of Object.entries(properties)) {
      const own = value[key];
      if (own === undefined || !isPlainObject(schema)) continue;
      const allowed = allowedIn([schema]);
      if (allowed.length > 0) rate += allowed.some((one) => one === own) ? 3 : -3;
    }
  }
  return rate;
}

const shapeNames: Readonly<Record<string, string>> = {
  object: 'object',
  array: 'array',
  string: 'scalar',
  number: 'scalar',
  integer: 'scalar',
  boolean: 'scalar',
  null: 'scalar',
};

function shapeOf(value: Json): string {
  return isList(value) ? 'array' : isPlainObject(value) ? 'object' : 'scalar';
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

export function listOf(value: Json | undefined): readonly Json[] {
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

/** The keys that these schemas of an object demand, always or together with others. */
export function requiredIn(schemas: readonly JsonObject[]): readonly string[] {
  const named = schemas.flatMap(({ required, dependentRequired, dependencies }) => [
    ...listOf(required),
    ...[dependentRequired, dependencies].flatMap((map) => patternsOf(map).flatMap(listOf)),
  ]);
  return [...new Set(named.filter((name) => typeof name === 'string'))];
}

/** Types that these schemas name. */
export function typesIn({ type }: JsonObject): readonly Json[] {
  return type === undefined ? [] : isList(type) ? type : [type];
}

/** The values that these schemas list. */
export function allowedIn(schemas: readonly JsonObject[]): readonly Json[] {
  return schemas.flatMap(({ const: constant, enum: allowed }) => [
    ...(constant === undefined ? [] : [constant]),
    ...listOf(allowed),
  ]);
}

/** Whether these schemas of an object know a key: by its name, by a pattern, or by a rule for other keys. */
export function knowsKey(schemas: readonly JsonObject[], name: string): boolean {
  const isMap = schemas.some((schema) => memberKeywords.some((keyword) => isPlainObject(schema[keyword])));
  const hasPatterns = schemas.some(({ patternProperties }) => isPlainObject(patternProperties));
  return isMap || hasPatterns || namesIn(schemas).includes(name);
}

/** Whether the types of these schemas allow a value of this kind. */
export function mayHold(schemas: readonly JsonObject[], value: Json): boolean {
  const types = schemas.flatMap(typesIn);
  return (
    types.length === 0 ||
    types.some((type) => isOfType(value, type)) ||
    allowedIn(schemas).some((one) => one === value)
  );
}

export function isOfType(value: Json, type: Json): boolean {
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
