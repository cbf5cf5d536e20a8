/**
 * A result as another call wants it: what was written to the paths of the first call stands where the second one asked
 * for it, and the output names those places. What the output names beside them stays where it is.
 */
import { parseMediaReference } from '../../contracts/media.ts';
import type { Json } from '../../contracts/primitives.ts';
import { mentionsMedia } from '../media-jobs.ts';
import { hidesMedia, type MediaPlaces } from './media-places.ts';

/** A call that was made, and what came of it. */
export interface KeptResult {
  readonly output: Json;
  readonly places: MediaPlaces;
  /** SHA-256 of what it wrote and of what its output names, by reference; files that were only read are not among them. */
  readonly files: Readonly<Record<string, string>>;
}

export interface FileState {
  readonly reference: string;
  readonly sha256: string;
}

export interface Relocation {
  readonly output: Json;
  readonly copies: readonly { readonly from: FileState; readonly to: string }[];
  /** They must still be what they were. */
  readonly kept: readonly FileState[];
}

/** Every file that an output names; null when it names one otherwise than as a whole value. */
export function listOutputFiles(output: Json): ReadonlySet<string> | null {
  const found = new Set<string>();
  return collect(output, found) ? found : null;
}

function collect(value: Json, found: Set<string>): boolean {
  if (typeof value === 'string') {
    if (parseMediaReference(value) !== null) found.add(value);
    return !hidesMedia(value);
  }
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, child]) => !mentionsMedia(key) && collect(child, found));
}

export function relocate({ output, places, files }: KeptResult, asked: MediaPlaces): Relocation {
  const moved = new Map<string, string>();
  for (const kind of ['sources', 'targets'] as const) {
    for (const [pointer, reference] of Object.entries(places[kind])) {
      const wanted = asked[kind][pointer];
      if (wanted !== undefined) moved.set(reference, wanted);
    }
  }
  const targets = Object.values(places.targets);
  const placeOf = (reference: string): string => {
    const exact = moved.get(reference);
    if (exact !== undefined) return exact;
    const folder = targets.find((target) => reference.startsWith(`${target}/`));
    return folder === undefined
      ? reference
      : `${moved.get(folder) ?? folder}${reference.slice(folder.length)}`;
  };
  const states = Object.entries(files).map(([reference, sha256]) => ({ reference, sha256 }));
  return {
    output: rename(output, placeOf),
    copies: states.flatMap((from) => {
      const to = placeOf(from.reference);
      return to === from.reference ? [] : [{ from, to }];
    }),
    kept: states.filter(({ reference }) => placeOf(reference) === reference),
  };
}

function rename(value: Json, placeOf: (reference: string) => string): Json {
  if (typeof value === 'string') return parseMediaReference(value) === null ? value : placeOf(value);
  if (Array.isArray(value)) return value.map((child) => rename(child as Json, placeOf));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, child]) => [key, rename(child as Json, placeOf)]),
  );
}
