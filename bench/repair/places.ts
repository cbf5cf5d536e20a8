/** Places of a valid input, and the input with one place changed. */
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { isList, isPlainObject } from '@capstan/core/json/values';
import type { Random } from '../shared/random.ts';
import { childSchema, partsOf, requiredIn } from './facts.ts';

type Path = readonly (string | number)[];

/** A value inside of a valid input. */
export interface ValidPlace {
  readonly input: Json;
  readonly path: Path;
  readonly value: Json;
  /** The schemas of the value, in all branches. */
  readonly parts: readonly JsonObject[];
  /** Of the object that has it; null for an item of a list. */
  readonly holder: {
    readonly object: JsonObject;
    readonly key: string;
    readonly parts: readonly JsonObject[];
  } | null;
  readonly random: Random;
}

const mostPlaces = 400;

export function listPlaces(root: JsonObject, input: Json, random: Random): readonly ValidPlace[] {
  const all = (schema: Json | undefined) => partsOf(root, schema, (branches) => branches);
  const places: ValidPlace[] = [{ input, path: [], value: input, parts: all(root), holder: null, random }];
  for (const { path, value, parts } of places) {
    if (places.length > mostPlaces) break;
    const keys = isList(value) ? [...value.keys()] : isPlainObject(value) ? Object.keys(value) : [];
    for (const key of keys) {
      const child = isList(value) ? value[Number(key)] : (value as JsonObject)[key];
      const holder = isPlainObject(value) ? { object: value, key: String(key), parts } : null;
      const own = childSchema(parts, key).flatMap(all);
      places.push({ input, path: [...path, key], value: child ?? null, parts: own, holder, random });
    }
  }
  return places.slice(1);
}

/** The input with another value at a path; undefined removes it. */
export function put(input: Json, path: Path, value: Json | undefined): Json {
  const [key, ...rest] = path;
  if (key === undefined) return value ?? null;
  if (isList(input)) {
    return input.flatMap((item, at) =>
      at !== key ? [item] : value === undefined && rest.length === 0 ? [] : [put(item, rest, value)],
    );
  }
  const object = input as JsonObject;
  const changed = Object.entries(object).flatMap(([name, child]): [string, Json][] => {
    if (name !== key) return [[name, child]];
    return value === undefined && rest.length === 0 ? [] : [[name, put(child, rest, value)]];
  });
  const isNew = !Object.hasOwn(object, key) && value !== undefined;
  return Object.fromEntries(isNew ? [...changed, [String(key), put(null, rest, value)]] : changed);
}

/** The input with another name for the key at a place; undefined where the object has such a key. */
export function rename({ input, path, holder, value }: ValidPlace, name: string): Json | undefined {
  if (holder === null || name === holder.key || name === '' || Object.hasOwn(holder.object, name))
    return undefined;
  return put(put(input, path, undefined), [...path.slice(0, -1), name], value);
}

export function isRequired({ holder }: ValidPlace): boolean {
  return holder !== null && requiredIn(holder.parts).includes(holder.key);
}

export function typesAt({ parts }: ValidPlace): ReadonlySet<Json> {
  return new Set(parts.flatMap(({ type }) => (type === undefined ? [] : type)).flat());
}
