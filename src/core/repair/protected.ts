/** The values that no repair may change: a URL, a media reference, anything at `output_path`. */
import type { Json } from '../../contracts/primitives.ts';
import { splitPointer } from '../json/values.ts';
import { outputPathKey } from '../media.ts';
import type { Candidate } from './candidate.ts';

/** A value deeper than this counts as holding a reference. */
const deepestReference = 100;

function holdsReference(value: Json | undefined, depth = 0): boolean {
  if (typeof value === 'string') return value.includes('://');
  if (value === null || typeof value !== 'object') return false;
  if (depth > deepestReference) return true;
  return Object.entries(value).some(
    ([key, child]) => key === outputPathKey || holdsReference(child, depth + 1),
  );
}

/**
 * A forbidden repair: it changes, invents or drops a URL, a media reference or anything at `output_path`. A key around
 * such a value may be renamed, and the value put into a list: it stays the same.
 */
export function isProtectedChange({ pointer, oldValue, newValue }: Candidate['change']): boolean {
  if (splitPointer(pointer).includes(outputPathKey)) return true;
  return oldValue !== newValue && (holdsReference(oldValue) || holdsReference(newValue));
}
