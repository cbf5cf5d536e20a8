/**
 * Which files an input names, and where in it. Whether two inputs ask for the same is only known of those that name
 * every file as a whole value: of a text that mentions one in passing nobody can tell the bytes.
 */
import { parseMediaReference } from '../../contracts/media.ts';
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { extendPointer } from '../json-pointer.ts';
import { mentionsMedia } from '../media-jobs.ts';
import { outputPathKey } from '../output-path.ts';

/** References by JSON Pointer into the input. */
export interface MediaPlaces {
  /** Files that are read. */
  readonly sources: Readonly<Record<string, string>>;
  /** Where files are to be written: all that stands at `output_path`. */
  readonly targets: Readonly<Record<string, string>>;
}

/** Whether a text names a file in a way that is no reference as a whole. */
export function hidesMedia(text: string): boolean {
  return mentionsMedia(text) && parseMediaReference(text) === null;
}

/** Null when a file is named otherwise than as a whole value, or something else is to be written to. */
export function findMediaPlaces(input: JsonObject): MediaPlaces | null {
  const places = { sources: {}, targets: {} };
  return collect(input, { pointer: '', isTarget: false }, places) ? places : null;
}

interface Standing {
  readonly pointer: string;
  /** At or below `output_path`. */
  readonly isTarget: boolean;
}

/** @returns false when it cannot be said */
function collect(
  value: Json,
  { pointer, isTarget }: Standing,
  places: { readonly [Kind in keyof MediaPlaces]: Record<string, string> },
): boolean {
  if (typeof value === 'string') {
    if (parseMediaReference(value) === null) return !isTarget && !mentionsMedia(value);
    places[isTarget ? 'targets' : 'sources'][pointer] = value;
    return true;
  }
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, child]) => {
    const below = {
      pointer: extendPointer(pointer, key),
      isTarget: isTarget || (!Array.isArray(value) && key === outputPathKey),
    };
    return !mentionsMedia(key) && collect(child, below, places);
  });
}
