/**
 * Repairs keys that are missing, superfluous, misspelt or in the wrong object. Dropping an unknown key is sure only if
 * it adds nothing and can mean nothing else. A default fills in only where no unknown key could be meant. A key is
 * renamed to a missing one with nearly its name, or moved to the one other object where its name is required and
 * missing. If two objects have it or lack it, the target is unclear. The value stays as it is. Matching is stricter
 * than "did you mean", because the result is applied: word by word, so that `min_width` is not `max_width`, nor
 * `input_path` `output_path`. Short words, digits and first letters must agree, so that `at_s` is not `at_ms`, `h264`
 * not `h265`, `mode` not `code`.
 */

import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { valueAt } from '../json/patch.ts';
import {
  canonicalJson,
  extendPointer,
  isForbiddenName,
  isList,
  isPlainObject,
  splitPointer,
} from '../json/values.ts';
import { editDistance } from '../nearest-name.ts';
import { type Broken, type Candidate, removeKey, type SchemaFinding, show } from './candidate.ts';
import { haveNamePatterns, knowsKey, mayHold, namesIn, schemasAt } from './schema-walk.ts';

const longestName = 100;
const mostTypos = 2;

function wordsOf(name: string): string[] {
  return name
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[\s_./-]+/)
    .filter((word) => word !== '');
}

function digitsOf(text: string): string {
  return text.match(/\p{N}+/gu)?.join(' ') ?? '';
}

/** Has letters, and no sign that may carry meaning: `c++` is not `c`, `_width` not `width`, `1.0` not `10`. */
function isName(text: string): boolean {
  return (
    text.length <= longestName &&
    /\p{L}/u.test(text) &&
    /^[\p{L}\p{N}\s_./-]*$/u.test(text) &&
    !/^[_-]/.test(text)
  );
}

function allowedTypos(known: string): number {
  return known.length <= 3 ? 0 : known.length <= 7 ? 1 : 2;
}

function countTypos(word: string, known: string): number {
  if (word === known) return 0;
  if (word[0] !== known[0]) return Number.POSITIVE_INFINITY;
  const allowed = allowedTypos(known);
  const typos = editDistance(word, known, allowed);
  return typos > allowed ? Number.POSITIVE_INFINITY : typos;
}

/** Typos between a name and a known one, 0 where only case and separators differ; null for a different name. */
export function nameDistance(name: string, known: string): number | null {
  if (!isName(name) || !isName(known) || digitsOf(name) !== digitsOf(known)) return null;
  const words = wordsOf(name);
  const knownWords = wordsOf(known);
  if (words.join('') === knownWords.join('')) return 0;
  if (words.length !== knownWords.length) return null;
  const typos = knownWords.reduce((sum, word, at) => sum + countTypos(words[at] ?? '', word), 0);
  return typos > mostTypos ? null : typos;
}

/** The known names with the fewest typos; several in a tie. */
export function findNearest(name: string, known: readonly string[]): readonly string[] {
  const near = known.flatMap((candidate) => {
    const distance = nameDistance(name, candidate);
    return distance === null ? [] : [{ candidate, distance }];
  });
  const least = Math.min(...near.map(({ distance }) => distance));
  return near.filter(({ distance }) => distance === least).map(({ candidate }) => candidate);
}

/** An object of the input, and the keys that its schemas know. */
interface KeyPlace {
  readonly pointer: string;
  readonly object: JsonObject;
  readonly known: readonly string[];
  /** Keys of the object that none of its schemas knows. */
  readonly unknown: readonly string[];
}

/** With more unknown keys than this, an object is not searched for typing errors. */
const mostUnknownKeys = 100;

function rename({ pointer, object }: KeyPlace, from: string, to: string): Candidate[] {
  const value = object[from];
  if (value === undefined || Object.hasOwn(object, to) || [from, to].some(isForbiddenName)) return [];
  const source = extendPointer(pointer, from);
  return [
    {
      kind: 'rename',
      pointer: source,
      operations: [{ op: 'move', from: source, path: extendPointer(pointer, to) }],
      description: `rename ${source} to ${to}`,
      change: { pointer: source, oldValue: value, newValue: value },
      isSure: true,
    },
  ];
}

function renameToMissing(place: KeyPlace, missing: string): readonly Candidate[] {
  return place.unknown.length > mostUnknownKeys
    ? []
    : place.unknown
        .filter((name) => nameDistance(name, missing) !== null)
        .flatMap((name) => rename(place, name, missing));
}

function renameUnknown(place: KeyPlace, unknown: string): readonly Candidate[] {
  const free = place.known.filter((name) => !Object.hasOwn(place.object, name));
  return findNearest(unknown, free).flatMap((name) => rename(place, unknown, name));
}

/** The object that has a key, and the name of the key; null when the input has no such object. */
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

/** The values that a schema itself gives for an absent key. */
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
  if (place.known.includes(name)) return []; // known in another branch, or its value is wrong
  const isSure = isNeedless(place, name, value);
  return [
    ...renameUnknown(place, name),
    removeKey(pointer, value, { description: `leave out ${pointer}, which is not allowed`, isSure }),
  ];
}

const remark = /^(_|\$|x-|#|\/\/|(comments?|notes?|todo)$)/i;

/**
 * Whether the key is a remark, repeats the value of a known key, or cannot mean a known key because all are present.
 */
function isNeedless({ object, known }: KeyPlace, name: string, value: Json): boolean {
  if (value === null || remark.test(name)) return true;
  const twins = known.filter((key) => Object.hasOwn(object, key) && nameDistance(name, key) !== null);
  if (twins.length > 0) return twins.every((key) => object[key] === value);
  return known.every((key) => Object.hasOwn(object, key));
}

/** An input with more objects than this is not searched. */
const mostObjects = 2_000;
const deepest = 50;

/**
 * Moves a key out of the wrong object: unknown where it is, required and missing in one other object, under the same
 * name. If two objects have it or lack it, the target is unclear. The value stays as it is.
 */
export function moveKeys(broken: Broken, findings: readonly SchemaFinding[]): readonly Candidate[] {
  const missing = findings.filter(({ keyword }) => keyword === 'required' || keyword === 'dependentRequired');
  const pointers = [...new Set(missing.map(({ pointer }) => pointer))];
  return pointers.flatMap((to) => {
    const name = nameOf(to);
    const isOnly = pointers.every((other) => other === to || nameOf(other) !== name);
    return name === undefined || !isOnly || isForbiddenName(name) ? [] : moveTo(broken, to, name);
  });
}

function nameOf(pointer: string): string | undefined {
  return splitPointer(pointer).at(-1);
}

function moveTo({ schema, input }: Broken, to: string, name: string): readonly Candidate[] {
  const holders = findHolders(input, name);
  const strays = (holders ?? [])
    .map((pointer) => extendPointer(pointer, name))
    .filter((pointer) => pointer !== to && isStray({ schema, input }, pointer));
  const [from] = strays;
  const value = from === undefined ? undefined : valueAt(input, from);
  if (from === undefined || value === undefined || strays.length > 1) return [];
  if (!mayHold(schemasAt(schema, to), value) || !isPlainObject(valueAt(input, parentOf(to)) ?? null))
    return [];
  return [
    {
      kind: 'move',
      pointer: from,
      operations: [{ op: 'move', from, path: to }],
      description: `move ${from}, which is not known there, to ${to}, where it is missing`,
      change: { pointer: from, oldValue: value, newValue: value },
      isSure: true,
    },
  ];
}

function parentOf(pointer: string): string {
  return pointer.slice(0, pointer.lastIndexOf('/'));
}

/** Whether no schema of the key's object knows it, by name or by a general rule. */
function isStray({ schema }: Broken, pointer: string): boolean {
  const schemas = schemasAt(schema, parentOf(pointer));
  return schemas.length > 0 && !knowsKey(schemas, nameOf(pointer) ?? '');
}

/** Pointers of the objects that have the key; null when there are too many objects to search. */
function findHolders(input: Json, name: string): readonly string[] | null {
  const found: string[] = [];
  let seen = 0;
  const walk = (value: Json, pointer: string, depth: number): boolean => {
    if (value === null || typeof value !== 'object') return true;
    seen += 1;
    if (seen > mostObjects || depth > deepest) return false;
    if (!isList(value) && Object.hasOwn(value, name)) found.push(pointer);
    return Object.entries(value).every(([key, child]) => walk(child, extendPointer(pointer, key), depth + 1));
  };
  return walk(input, '', 0) ? found : null;
}
