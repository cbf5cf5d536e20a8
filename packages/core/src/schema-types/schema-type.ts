/**
 * The type of the values that a JSON Schema accepts (2020-12, and 07 as far as it differs). Constraints that a type
 * cannot express (patterns, bounds of numbers, `not`, conditions) are left out, which only makes it wider.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { isList, isPlainObject } from '../json/values.ts';
import { intersectionOf, typeOfValue, unionOf } from './combine-types.ts';
import { isDraft7, resolveLocalRef, withLocalReferences } from './references.ts';
import {
  absent,
  anyType,
  aType,
  booleanKinds,
  createObjectType,
  kinds,
  type ListType,
  neverType,
  type ObjectType,
  once,
  type Property,
  type ValueType,
} from './value-type.ts';

const lists = ['allOf', 'anyOf', 'oneOf'] as const;
const singles = ['if', 'then', 'else'] as const;

/**
 * The keys that `unevaluatedProperties: false` allows: those that the schema describes, or another schema of the same
 * object. Null when they cannot be listed.
 */
function listEvaluatedNames(
  root: JsonObject,
  resolve: (ref: string) => Json | undefined,
): ReadonlySet<string> | null {
  const names = new Set<string>();
  const seen = new Set<JsonObject>();
  /** Whether all its keys can be listed. */
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

type ResolveRef = (ref: string) => Json | undefined;

/** @param schema one without a fault by findSchemaFault */
export function typeOfSchema(schema: JsonObject): ValueType {
  const root = withLocalReferences(schema);
  const targets = new Map<string, Json | undefined>();
  const resolve: ResolveRef = (ref) => {
    if (!targets.has(ref)) targets.set(ref, resolveLocalRef(root, ref));
    return targets.get(ref);
  };
  const known = new Map<JsonObject, ValueType>();
  const isOld = isDraft7(root);
  const read: ReadSchema = (schema) => {
    if (schema === false) return neverType;
    if (!isPlainObject(schema)) return anyType;
    const before = known.get(schema);
    if (before !== undefined) return before;
    known.set(schema, anyType); // until it is read: a recursive reference adds nothing
    const type = readSchema(isOld ? ignoreNewer(schema) : schema, read, resolve);
    known.set(schema, type);
    return type;
  };
  return read(root);
}

/** Removes keywords that have no meaning in 07. */
function ignoreNewer({ prefixItems, unevaluatedProperties, ...older }: JsonObject): JsonObject {
  return older;
}

type ReadSchema = (schema: Json) => ValueType;

function readSchema(schema: JsonObject, read: ReadSchema, resolve: ResolveRef): ValueType {
  const parts = [readOwn(schema, read, resolve)];
  if (typeof schema.$ref === 'string') parts.push(read(resolve(schema.$ref) ?? true));
  for (const branch of listAt(schema, 'allOf')) parts.push(read(branch));
  for (const keyword of ['anyOf', 'oneOf']) {
    const branches = listAt(schema, keyword);
    if (branches.length > 0) parts.push(unionOf(branches.map(read)));
  }
  if (schema.const !== undefined) parts.push(typeOfValue(schema.const));
  const values = listAt(schema, 'enum');
  if (values.length > 0) parts.push(unionOf(values.map(typeOfValue)));
  return intersectionOf(parts);
}

function listAt(schema: JsonObject, keyword: string): readonly Json[] {
  const value = schema[keyword] ?? null;
  return isList(value) ? value : [];
}

function readOwn(schema: JsonObject, read: ReadSchema, resolve: ResolveRef): ValueType {
  const allowed = readKinds(schema);
  const list = readList(schema, read);
  const object = readObject(schema, read, resolve);
  const isInteger = allowed !== null && !allowed.names.has('number');
  const length = readLength(schema);
  if (allowed === null && length === null && list === null && object === null) return anyType;
  return aType({
    kinds: allowed?.kinds ?? anyType.kinds,
    isInteger,
    length: length ?? anyType.length,
    list: list ?? anyType.list,
    object: object ?? anyType.object,
  });
}

const kindsOf: Readonly<Record<string, number>> = {
  null: kinds.null,
  boolean: booleanKinds,
  integer: kinds.number,
  number: kinds.number,
  string: kinds.string,
  array: kinds.list,
  object: kinds.object,
};

function readKinds({
  type,
  nullable,
}: JsonObject): { readonly kinds: number; readonly names: ReadonlySet<Json> } | null {
  if (type === undefined) return null;
  const names = new Set(isList(type) ? type : [type]);
  if (nullable === true) names.add('null'); // ajv knows it, as OpenAPI does
  const allowed = [...names].reduce<number>((all, name) => all | (kindsOf[String(name)] ?? 0), 0);
  return { kinds: allowed, names };
}

function readLength({ minLength, maxLength }: JsonObject): ValueType['length'] | null {
  if (minLength === undefined && maxLength === undefined) return null;
  const { least, most } = anyType.length;
  return {
    least: typeof minLength === 'number' ? minLength : least,
    most: typeof maxLength === 'number' ? maxLength : most,
  };
}

function readList(schema: JsonObject, read: ReadSchema): ListType | null {
  const { items, prefixItems, additionalItems, minItems, maxItems } = schema;
  if ([items, prefixItems, minItems, maxItems].every((value) => value === undefined)) return null;
  const isTuple = items !== undefined && isList(items); // draft 07
  const prefix = isTuple ? items : listAt(schema, 'prefixItems');
  const rest = (isTuple ? additionalItems : items) ?? true;
  const readRest = once(() => read(rest));
  const longest = rest === false ? prefix.length : Number.POSITIVE_INFINITY;
  return {
    least: typeof minItems === 'number' ? minItems : 0,
    most: Math.min(longest, typeof maxItems === 'number' ? maxItems : longest),
    positions: prefix.length,
    item: (index) => (index < prefix.length ? read(prefix[index] ?? true) : readRest()),
    rest: readRest,
  };
}

const objectKeywords = [
  'type',
  'properties',
  'required',
  'additionalProperties',
  'patternProperties',
  'unevaluatedProperties',
] as const;

function readObject(schema: JsonObject, read: ReadSchema, resolve: ResolveRef): ObjectType | null {
  if (objectKeywords.every((keyword) => schema[keyword] === undefined)) return null;
  const properties = isPlainObject(schema.properties) ? schema.properties : {};
  const required = new Set(listAt(schema, 'required').filter((name) => typeof name === 'string'));
  const evaluated = schema.unevaluatedProperties === false ? listEvaluatedNames(schema, resolve) : null;
  const presenceOf = (name: string) => (required.has(name) ? 'certain' : 'maybe');
  return createObjectType({
    names: () => [...Object.keys(properties), ...required, ...(evaluated ?? [])],
    required,
    named: (name): Property => {
      if (!Object.hasOwn(properties, name)) {
        if (evaluated?.has(name)) return { type: anyType, presence: presenceOf(name) };
        const other = readOther(schema, read, evaluated);
        return other.presence === 'never' ? other : { ...other, presence: presenceOf(name) };
      }
      const type = read(properties[name] ?? true);
      return type.kinds === 0 ? absent : { type, presence: presenceOf(name) };
    },
    other: () => readOther(schema, read, evaluated),
    isDescribed: true,
  });
}

function readOther(
  { additionalProperties, patternProperties }: JsonObject,
  read: ReadSchema,
  evaluated: ReadonlySet<string> | null,
): Property {
  const hasPatterns = isPlainObject(patternProperties) && Object.keys(patternProperties).length > 0;
  if (hasPatterns) return { type: anyType, presence: 'maybe' };
  if (evaluated !== null && additionalProperties === undefined) return absent;
  const type = read(additionalProperties ?? true);
  return type.kinds === 0 ? absent : { type, presence: 'maybe' };
}
