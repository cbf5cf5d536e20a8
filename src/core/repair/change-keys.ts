/**
 * Keys that are too few or too many. What the author wrote under an unknown name is given up without doubt only
 * where it says nothing new and could say nothing else; a default fills in only where nothing unknown could have
 * been meant.
 */
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { canonicalJson } from '../canonical-json.ts';
import { isForbiddenName } from '../forbidden-names.ts';
import { extendPointer, splitPointer } from '../json-pointer.ts';
import { isPlainObject } from '../json-type.ts';
import { type Broken, type Candidate, removeKey, show } from './candidate.ts';
import { nameDistance } from './near-name.ts';
import { valueAt } from './operation.ts';
import { type KeyPlace, renameToMissing, renameUnknown } from './rename-key.ts';
import type { SchemaFinding } from './schema-finding.ts';
import { haveNamePatterns, mayHold, namesIn, schemasAt } from './schema-walk.ts';

/** The object that holds a key, and the name of the key; null where the input has none there. */
function findPlace({ schema, input }: Broken, pointer: string): { place: KeyPlace; name: string } | null {
  const name = splitPointer(pointer).at(-1);
  const parent = pointer.slice(0, pointer.lastIndexOf('/'));
  const object = valueAt(input, parent);
  if (name === undefined || object === undefined || !isPlainObject(object)) return null;
  const schemas = schemasAt(schema, parent);
  if (schemas.length === 0) return null;
  const known = namesIn(schemas);
  const declared = new Set(known);
  const unknown = haveNamePatterns(schemas) ? [] : Object.keys(object).filter((key) => !declared.has(key));
  return { place: { pointer: parent, object, known, unknown }, name };
}

export function supplyKey(broken: Broken, { pointer }: SchemaFinding): readonly Candidate[] {
  const found = findPlace(broken, pointer);
  if (found === null) return [];
  const { place, name } = found;
  return [...renameToMissing(place, name), ...fillKey(broken, place, name)];
}

function fillKey({ schema }: Broken, place: KeyPlace, name: string): readonly Candidate[] {
  if (isForbiddenName(name)) return [];
  const pointer = extendPointer(place.pointer, name);
  const schemas = schemasAt(schema, pointer);
  const values = new Map(schemas.flatMap(saidValues).map((value) => [canonicalJson(value), value]));
  const isSure = !place.unknown.some((key) => {
    const value = place.object[key] ?? null;
    return value !== null && (mayHold(schemas, value) || nameDistance(key, name) !== null);
  });
  return [...values.values()].map((value) => ({
    kind: 'fill',
    pointer,
    operations: [{ op: 'add', path: pointer, value }],
    description: `add ${pointer} with ${show(value)}, as the schema says`,
    change: { pointer, oldValue: undefined, newValue: value },
    isSure,
  }));
}

/** The values that a schema itself names for an absent key. */
function saidValues(schema: JsonObject): readonly Json[] {
  const { default: standard, const: constant, enum: allowed } = schema;
  if (standard !== undefined) return [standard];
  if (constant !== undefined) return [constant];
  return Array.isArray(allowed) && allowed.length === 1 ? allowed : [];
}

export function settleUnknownKey(broken: Broken, { pointer }: SchemaFinding): readonly Candidate[] {
  const found = findPlace(broken, pointer);
  const value = found?.place.object[found.name];
  if (found === null || value === undefined) return [];
  const { place, name } = found;
  if (place.known.includes(name)) return []; // of another branch, or wrong itself
  const isSure = isNeedless(place, name, value);
  return [
    ...renameUnknown(place, name),
    removeKey(pointer, value, { description: `leave out ${pointer}, which is not allowed`, isSure }),
  ];
}

const remark = /^(_|\$|x-|#|\/\/|(comments?|notes?|todo)$)/i;

/** Whether it is no wish, says again what a known key says, or no known key is left that could be meant. */
function isNeedless({ object, known }: KeyPlace, name: string, value: Json): boolean {
  if (value === null || remark.test(name)) return true;
  const twins = known.filter((key) => Object.hasOwn(object, key) && nameDistance(name, key) !== null);
  if (twins.length > 0) return twins.every((key) => object[key] === value);
  return known.every((key) => Object.hasOwn(object, key));
}
