/**
 * Repairs the keys of an object: misspelt, written with another unit, missing or superfluous. A key is renamed to one
 * that is free and has nearly its name; that is certain when no other known name is as near. A missing key is filled in
 * only where the schema gives its one value. Leaving out an unknown key is certain only if it carries no information.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { canonicalJson, extendPointer, isForbiddenName, isPlainObject } from '../json/values.ts';
import { editDistance } from '../nearest-name.ts';
import { type Candidate, type Certainty, moveValue, removeKey, show } from './candidate.ts';
import { findNearest, looseDistance, nameDistance } from './names.ts';
import { allowedIn, type InputPlace, mayHold, namesIn, type Places, requiredIn } from './schema-walk.ts';
import { convert, splitUnit, unitOf } from './units.ts';

/** With more unknown keys than this, an object is not searched for typing errors. */
const mostUnknownKeys = 100;
/** An object with more keys is not looked at, nor are more keys of its schemas. */
const mostKeys = 2_000;

/** An object of the input, with the keys that its schemas name. */
export interface KeyPlace {
  readonly pointer: string;
  readonly object: JsonObject;
  readonly known: readonly string[];
  /** Keys of the object that none of its schemas names. */
  readonly unknown: readonly string[];
  readonly place: InputPlace;
  readonly places: Places;
}

export function readKeys(place: InputPlace, places: Places): KeyPlace | null {
  const { value: object, schemas, pointer } = place;
  if (!isPlainObject(object) || schemas.length === 0) return null;
  const names = Object.keys(object);
  if (names.length > mostKeys) return null;
  const known = [...new Set([...namesIn(schemas), ...requiredIn(schemas)])].slice(0, mostKeys);
  const declared = new Set(known);
  const unknown = names.filter((key) => !declared.has(key) && !isForbiddenName(key));
  return { pointer, object, known, unknown, place, places };
}

function searched({ unknown }: KeyPlace): readonly string[] {
  return unknown.length > mostUnknownKeys ? [] : unknown;
}

function free({ known, object }: KeyPlace): readonly string[] {
  return known.filter((name) => !Object.hasOwn(object, name) && !isForbiddenName(name));
}

export function renameKeys(keys: KeyPlace): readonly Candidate[] {
  const names = free(keys);
  return searched(keys).flatMap((from) => {
    const near = names.filter((name) => nameDistance(from, name) !== null);
    const nearest = findNearest(from, keys.known);
    const strict = near.map((to) => rename(keys, [from, to], nearest.includes(to) ? 'certain' : 'likely'));
    const loose = near.length > 0 ? [] : findNearest(from, names, looseDistance);
    return [...strict, ...loose.map((to) => rename(keys, [from, to], 'guess'))];
  });
}

function rename(
  { pointer, object }: KeyPlace,
  [from, to]: readonly [string, string],
  evidence: Certainty,
): Candidate {
  const source = extendPointer(pointer, from);
  return moveValue('rename', {
    way: 'key',
    from: source,
    to: extendPointer(pointer, to),
    value: object[from] ?? null,
    description: `rename ${source} to ${to}, because ${from} is no known key there and ${to} is nearly the same`,
    evidence,
  });
}

/** `timeout_s: 10` where the schema has `timeout_ms`, or `timeout` with milliseconds in its description. */
export function renameUnits(keys: KeyPlace): readonly Candidate[] {
  return searched(keys).flatMap((from) => {
    const value = keys.object[from];
    const own = splitUnit(from);
    if (own === undefined || typeof value !== 'number') return [];
    return free(keys).flatMap((to) => {
      const base = splitUnit(to)?.base ?? to;
      if (nameDistance(own.base, base) !== 0) return [];
      const schemas = keys.places.schemasOf(keys.place, to);
      const unit = unitOf(to, describe(schemas));
      const converted = unit === undefined ? value : convert(value, own.unit, unit);
      if (converted === undefined) return [];
      const evidence = unit === undefined ? 'likely' : 'certain';
      const way = unit === undefined ? 'unit-kept' : 'unit-converted';
      return [renameAndConvert(keys, { from, to, way, evidence }, converted)];
    });
  });
}

function renameAndConvert(
  { pointer, object }: KeyPlace,
  { from, to, way, evidence }: Pick<Candidate, 'way' | 'evidence'> & Readonly<Record<'from' | 'to', string>>,
  newValue: number,
): Candidate {
  const oldValue = object[from] ?? null;
  const [source, target] = [extendPointer(pointer, from), extendPointer(pointer, to)];
  return {
    kind: 'rename',
    way,
    pointer: source,
    operations: [
      { op: 'test', path: source, value: oldValue },
      { op: 'move', from: source, path: target },
      ...(newValue === oldValue ? [] : [{ op: 'replace', path: target, value: newValue } as const]),
    ],
    description: `rename ${source} to ${to} and write ${newValue}, because both name the same but for the unit`,
    change: { pointer: source, oldValue, newValue },
    evidence,
  };
}

export function describe(schemas: readonly JsonObject[]): readonly string[] {
  return schemas.flatMap(({ title, description }) =>
    [title, description].filter((text) => typeof text === 'string'),
  );
}

/** Demanded keys that are absent, with the only value that the schema gives. */
export function fillKeys(keys: KeyPlace): readonly Candidate[] {
  const missing = requiredIn(keys.place.schemas).filter(
    (name) => !Object.hasOwn(keys.object, name) && !isForbiddenName(name),
  );
  const filled = missing.slice(0, mostUnknownKeys).map((name) => fillKey(keys, name));
  // A demanded key without such a value may be the one that another branch wants instead.
  const isChoice = filled.some((candidates) => candidates.length === 0);
  return filled.flat().map((candidate) => (isChoice ? { ...candidate, evidence: 'guess' } : candidate));
}

function fillKey(keys: KeyPlace, name: string): readonly Candidate[] {
  const { place, places, object, unknown, pointer } = keys;
  const schemas = places.schemasOf(place, name);
  const values = new Map(schemas.flatMap(saidValues).map((value) => [canonicalJson(value), value]));
  const isMeant = unknown.slice(0, mostUnknownKeys).some((key) => {
    const value = object[key] ?? null;
    return value !== null && (mayHold(schemas, value) || nameDistance(key, name) !== null);
  });
  const path = extendPointer(pointer, name);
  return [...values.values()].map((value) => ({
    kind: 'fill',
    way: 'given',
    pointer: path,
    operations: [{ op: 'add', path, value }],
    description: `add ${path} with ${show(value)}, because it is missing and the schema gives this value`,
    change: { pointer: path, oldValue: undefined, newValue: value },
    evidence: isMeant || isElsewhere(keys, name) ? 'guess' : 'certain',
  }));
}

/** Whether the object around or one inside has the key without naming it, as a map does: it may be meant here. */
function isElsewhere({ place, places, object }: KeyPlace, name: string): boolean {
  const inside = Object.keys(object).map((key) => places.child(place, key));
  return [place.parent, ...inside].some(
    (near) =>
      isPlainObject(near?.value) && Object.hasOwn(near.value, name) && !namesIn(near.schemas).includes(name),
  );
}

/** The values that a schema itself gives for an absent key. */
function saidValues(schema: JsonObject): readonly Json[] {
  const allowed = allowedIn([schema]);
  if (allowed.length === 1) return allowed;
  return schema.default === undefined ? [] : [schema.default];
}

export function dropKeys(keys: KeyPlace): readonly Candidate[] {
  return searched(keys).map((name) => {
    const value = keys.object[name] ?? null;
    const reason = explainNeedless(keys, name, value);
    return removeKey(extendPointer(keys.pointer, name), value, {
      way: 'key',
      reason: reason ?? 'it is not allowed there; what it says is lost',
      evidence: reason === null ? 'guess' : 'certain',
    });
  });
}

const remark = /^(\/\/.*|#.*|[_$@-]*(comments?|notes?|todo))$/i;

/** Why the key is not needed; null when it may be. */
function explainNeedless({ object, known }: KeyPlace, name: string, value: Json): string | null {
  // A known name beside it may be meant, where null has a meaning.
  const isMisspelt = known.some(
    (key) => !Object.hasOwn(object, key) && editDistance(key.toLowerCase(), name.toLowerCase(), 1) <= 1,
  );
  if (value === null && !isMisspelt) return 'it is not allowed there and holds nothing';
  if (typeof value === 'string' && remark.test(name)) return 'it is not allowed there and is only a remark';
  const twins = known.filter((key) => Object.hasOwn(object, key) && nameDistance(name, key) !== null);
  const isRepeated = twins.length > 0 && twins.every((key) => object[key] === value);
  return isRepeated ? `it is not allowed there and repeats ${twins[0]}` : null;
}
