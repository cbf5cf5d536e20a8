/**
 * Moves a key from the wrong object: to the object that holds it, to one of the objects inside, or to the one other
 * object where its name is required and missing. If two objects may be meant, none is certain. The value stays as it
 * is.
 */
import type { Json } from '../contracts/primitives.ts';
import { extendPointer, isForbiddenName, isList, isPlainObject, splitPointer } from '../json/values.ts';
import { type Candidate, type Certainty, moveValue, type SchemaFinding } from './candidate.ts';
import type { KeyPlace } from './keys.ts';
import { type InputPlace, keysOf, knowsKey, mayHold, namesIn, type Places } from './schema-walk.ts';

/** An input with more objects than this is not searched. */
const mostObjects = 2_000;
const deepest = 50;
/** Keys and objects inside that are looked at for one object. */
const mostKeys = 50;

interface Move {
  readonly from: string;
  readonly to: string;
  readonly value: Json;
  readonly evidence: Certainty;
}

function move({ from, to, value, evidence }: Move): Candidate {
  const there = evidence === 'guess' ? 'any key may be there' : 'it is known there';
  const description = `move ${from} to ${to}, because it is not known where it is, and ${there}`;
  return moveValue('move', { way: 'key', from, to, value, description, evidence });
}

/**
 * Keys that are unknown in this object, or have another value than they may, and known in an object around it or
 * directly inside it. That an object takes any key is only a guess.
 */
export function moveNearby(keys: KeyPlace): readonly Candidate[] {
  const { place, places } = keys;
  const misfits = keysOf(place.value)
    .slice(0, mostKeys)
    .filter((key) => isMisfit(places.child(place, key)));
  const strays = [...new Set([...keys.unknown, ...misfits])].slice(0, mostKeys);
  const hosts = strays.length === 0 ? [] : [...listAround(place), ...listInside(place, places)];
  return strays.flatMap((key) => {
    const value = keys.object[key] ?? null;
    const known = keys.unknown.includes(key) ? 'certain' : 'likely';
    return hosts
      .filter((host) => takes(host, key) && mayHold(places.schemasOf(host, key), value))
      .map((host) => {
        const from = extendPointer(place.pointer, key);
        const evidence = namesIn(host.schemas).includes(key) ? known : 'guess';
        return move({ from, to: extendPointer(host.pointer, key), value, evidence });
      });
  });
}

function isMisfit(place: InputPlace | undefined): boolean {
  return place !== undefined && !isForbiddenName(place.key) && !mayHold(place.schemas, place.value);
}

function takes({ value, schemas }: InputPlace, key: string): boolean {
  return isPlainObject(value) && !Object.hasOwn(value, key) && knowsKey(schemas, key);
}

/** The objects around, the nearest first: two at most, and a list counts as nothing. */
function listAround({ parent }: InputPlace): readonly InputPlace[] {
  const around: InputPlace[] = [];
  for (let host = parent; host !== null && around.length < 2; host = host.parent) {
    if (isPlainObject(host.value)) around.push(host);
  }
  return around;
}

/** The objects directly inside, also as the items of a list. */
function listInside(place: InputPlace, places: Places): readonly InputPlace[] {
  const childrenOf = (one: InputPlace): readonly InputPlace[] =>
    keysOf(one.value)
      .slice(0, mostKeys)
      .flatMap((key) => places.child(one, key) ?? []);
  const children = childrenOf(place);
  const items = children.filter(({ value }) => isList(value)).flatMap(childrenOf);
  return [...children, ...items].filter(({ value }) => isPlainObject(value)).slice(0, mostKeys);
}

/** Keys that are required and missing at one place, and unknown under the same name at one other. */
export function moveKeys(
  places: Places,
  findings: readonly SchemaFinding[],
  input: Json,
): readonly Candidate[] {
  const missing = findings.filter(({ keyword }) => keyword === 'required' || keyword === 'dependentRequired');
  const pointers = [...new Set(missing.map(({ pointer }) => pointer))];
  return pointers.flatMap((to) => {
    const name = splitPointer(to).at(-1);
    const isOnly = pointers.every((other) => other === to || splitPointer(other).at(-1) !== name);
    return name === undefined || !isOnly || isForbiddenName(name) ? [] : moveTo(places, to, { name, input });
  });
}

function moveTo(
  places: Places,
  to: string,
  { name, input }: { readonly name: string; readonly input: Json },
): readonly Candidate[] {
  const host = places.at(parentOf(to));
  const strays = (findHolders(input, name) ?? [])
    .map((pointer) => extendPointer(pointer, name))
    .filter((pointer) => pointer !== to && isStray(places.at(parentOf(pointer)), name));
  const [from] = strays;
  const value = from === undefined ? undefined : places.at(from)?.value;
  if (host === undefined || from === undefined || value === undefined || strays.length > 1) return [];
  if (!isPlainObject(host.value) || !mayHold(places.schemasOf(host, name), value)) return [];
  return [move({ from, to, value, evidence: 'certain' })];
}

function parentOf(pointer: string): string {
  return pointer.slice(0, pointer.lastIndexOf('/'));
}

/** Whether no schema of the key's object knows it, by name or by a general rule. */
function isStray(place: InputPlace | undefined, name: string): boolean {
  return place !== undefined && place.schemas.length > 0 && !knowsKey(place.schemas, name);
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
