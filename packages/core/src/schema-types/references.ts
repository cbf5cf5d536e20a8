/**
 * References of an untrusted JSON Schema (2020-12, and 07 as far as it differs). A schema may embed documents: schemas
 * with an `$id` of their own, to which relative and absolute references resolve. `withLocalReferences` turns all of it
 * into pointers from the root, so that nothing else needs to know of addresses. Nothing is ever fetched.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { extendPointer, isList, isPlainObject, splitPointer } from '../json/values.ts';

export const referenceKeywords = ['$ref', '$dynamicRef', '$recursiveRef'] as const;

/** Keywords whose own keys are names, not keywords. */
export const schemaMaps: ReadonlySet<string> = new Set([
  '$defs',
  'definitions',
  'dependencies',
  'dependentSchemas',
  'patternProperties',
  'properties',
]);

/** Keywords whose values are data, whatever they look like. */
export const dataKeywords: ReadonlySet<string> = new Set(['const', 'default', 'enum', 'examples']);

/** Keywords that give a schema an address, by which a pointer has no need to find it. */
const names: ReadonlySet<string> = new Set(['$anchor', '$dynamicAnchor', '$id', 'id']);

/** Whether a schema is read as draft 07; any other is read as 2020-12. */
export function isDraft7({ $schema }: JsonObject): boolean {
  return typeof $schema === 'string' && /^https?:\/\/json-schema\.org\/draft-0[67]\/schema#?$/.test($schema);
}

/** A fault of a reference, with its pointer. */
export class ReferenceFault extends Error {
  override readonly name = 'ReferenceFault';
}

/** The address of a document that names none. */
const nowhere = 'schema://document/';

interface AddressedPlace {
  readonly pointer: string;
  /** The address of the document that the schema belongs to. */
  readonly base: string;
}

/** What addresses name: `ADDRESS` a document, `ADDRESS#NAME` an anchor; each by its pointer from the root. */
interface Named {
  readonly pointers: Map<string, string>;
  /** The names of all anchors, of whichever document. */
  readonly anchors: Set<string>;
  readonly isOld: boolean;
}

const localized = new WeakMap<JsonObject, JsonObject>();

/**
 * The same schema with pointers from the root as references, and without embedded `$id`s; itself when it has none.
 * @throws ReferenceFault for a reference that leaves the document
 */
export function withLocalReferences(root: JsonObject): JsonObject {
  const known = localized.get(root);
  if (known !== undefined) return known;
  const schema = hasAddresses(root, true) ? localize(root) : root;
  localized.set(root, schema);
  return schema;
}

/** Whether a schema has a reference that is not a pointer or an anchor of its own, or an address below the root. */
function hasAddresses(schema: JsonObject, isRoot: boolean): boolean {
  const isAddressed =
    typeof schema.id === 'string' ||
    typeof schema.$dynamicRef === 'string' ||
    (!isRoot && typeof schema.$id === 'string') ||
    referenceKeywords.some(
      (keyword) => typeof schema[keyword] === 'string' && !schema[keyword].startsWith('#'),
    );
  return isAddressed || listChildren(schema).some(({ schema: child }) => hasAddresses(child, false));
}

function localize(root: JsonObject): JsonObject {
  const named: Named = { pointers: new Map(), anchors: new Set(), isOld: isDraft7(root) };
  const place: AddressedPlace = { pointer: '', base: nowhere };
  named.pointers.set(nowhere, '');
  collect(root, place, named);
  return rewrite(root, place, named);
}

interface Child {
  readonly schema: JsonObject;
  readonly path: readonly string[];
}

/** The schemas directly inside a schema, also below keywords that no draft knows: references may lead there. */
function listChildren(schema: JsonObject): readonly Child[] {
  return Object.entries(schema).flatMap(([keyword, value]): readonly Child[] =>
    dataKeywords.has(keyword) ? [] : childrenOf(value, [keyword], schemaMaps.has(keyword)),
  );
}

function childrenOf(value: Json, path: readonly string[], isMap: boolean): readonly Child[] {
  if (isPlainObject(value) && !isMap) return [{ schema: value, path }];
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, child]) => childrenOf(child, [...path, key], false));
}

/** The place of a schema, by its own `$id`. In 07 one beside `$ref` has no meaning, and `#name` is an anchor. */
function enter(schema: JsonObject, { pointer, base }: AddressedPlace, { isOld }: Named): AddressedPlace {
  const { $id } = schema;
  if (typeof $id !== 'string' || $id.startsWith('#') || (isOld && schema.$ref !== undefined)) {
    return { pointer, base };
  }
  return { pointer, base: parse($id, { pointer, base }).document };
}

function parse(reference: string, { pointer, base }: AddressedPlace): { document: string; fragment: string } {
  try {
    const url = new URL(reference, base);
    const fragment = decodeFragment(url.hash.slice(1));
    url.hash = '';
    return { document: url.href, fragment };
  } catch {
    throw new ReferenceFault(`${JSON.stringify(reference)} is no address at ${pointer || '/'}`);
  }
}

function collect(schema: JsonObject, outer: AddressedPlace, named: Named): void {
  const { pointer, base } = enter(schema, outer, named);
  if (base !== outer.base && !named.pointers.has(base)) named.pointers.set(base, pointer);
  const { $anchor, $dynamicAnchor, $id } = schema;
  const old = named.isOld && typeof $id === 'string' && $id.startsWith('#') ? $id.slice(1) : undefined;
  for (const name of [$anchor, $dynamicAnchor, old]) {
    if (typeof name !== 'string' || name === '' || name.startsWith('/')) continue;
    if (name === $dynamicAnchor && named.anchors.has(name)) {
      throw new ReferenceFault(
        `$dynamicAnchor ${JSON.stringify(name)} in two embedded documents at ${pointer}`,
      );
    }
    named.pointers.set(`${base}#${name}`, pointer);
    named.anchors.add(name);
  }
  for (const child of listChildren(schema)) {
    collect(child.schema, { pointer: extendPointer(pointer, ...child.path), base }, named);
  }
}

function rewrite(schema: JsonObject, outer: AddressedPlace, named: Named): JsonObject {
  const place = enter(schema, outer, named);
  const one = (value: Json, path: readonly string[], isMap: boolean): Json => {
    if (isPlainObject(value) && !isMap) {
      return rewrite(value, { pointer: extendPointer(place.pointer, ...path), base: place.base }, named);
    }
    if (value === null || typeof value !== 'object') return value;
    if (isList(value)) return value.map((item, at) => one(item, [...path, String(at)], false));
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, one(item, [...path, key], false)]),
    );
  };
  const { $dynamicRef, ...others } = schema;
  const entries = Object.entries(others).flatMap(([key, value]): readonly (readonly [string, Json])[] => {
    if (dataKeywords.has(key)) return [[key, value]];
    if (typeof value !== 'string') return [[key, one(value, [key], schemaMaps.has(key))]];
    if (isReference(key)) return [[key, toPointer(key, value, { place, named })]];
    return names.has(key) ? [] : [[key, value]];
  });
  const local: JsonObject = Object.fromEntries(entries);
  if (typeof $dynamicRef !== 'string') return local;
  // Only one schema has the anchor's name, so a dynamic reference leads to it from anywhere.
  const $ref = toPointer('$dynamicRef', $dynamicRef, { place, named });
  const { allOf = [] } = local;
  return { ...local, allOf: [...(isList(allOf) ? allOf : []), { $ref }] };
}

function isReference(key: string): boolean {
  return (referenceKeywords as readonly string[]).includes(key);
}

function toPointer(
  keyword: string,
  reference: string,
  { place, named: { pointers } }: { readonly place: AddressedPlace; readonly named: Named },
): string {
  const { document, fragment } = parse(reference, place);
  const start = pointers.get(document);
  const isPath = fragment === '' || fragment.startsWith('/');
  const target =
    isPath && start !== undefined ? `${start}${fragment}` : pointers.get(`${document}#${fragment}`);
  if (target === undefined) {
    const fault =
      start === undefined
        ? 'leaves the document; allowed are references to a part of the document, and to schemas embedded in it with their `$id`'
        : 'names nothing in the document';
    throw new ReferenceFault(`${keyword} ${JSON.stringify(reference)} ${fault} at ${place.pointer || '/'}`);
  }
  return `#${target.split('/').map(encodeURIComponent).join('/')}`;
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
