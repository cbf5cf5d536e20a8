/** A key that is too many under a name close to one that is missing. The value stays as it is. */
import type { JsonObject } from '../../contracts/primitives.ts';
import { isForbiddenName } from '../forbidden-names.ts';
import { extendPointer } from '../json-pointer.ts';
import type { Candidate } from './candidate.ts';
import { findNearest, nameDistance } from './near-name.ts';

/** An object of the input, and what its schemas know. */
export interface KeyPlace {
  readonly pointer: string;
  readonly object: JsonObject;
  readonly known: readonly string[];
  /** Keys of the object that no schema of it knows. */
  readonly unknown: readonly string[];
}

/** An object with more unknown keys than this is no place of typing errors. */
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

export function renameToMissing(place: KeyPlace, missing: string): readonly Candidate[] {
  return place.unknown.length > mostUnknownKeys
    ? []
    : place.unknown
        .filter((name) => nameDistance(name, missing) !== null)
        .flatMap((name) => rename(place, name, missing));
}

export function renameUnknown(place: KeyPlace, unknown: string): readonly Candidate[] {
  const free = place.known.filter((name) => !Object.hasOwn(place.object, name));
  return findNearest(unknown, free).flatMap((name) => rename(place, unknown, name));
}
