/**
 * What a repair never does: change or invent a URL, a media reference or anything at `output_path`, or leave one
 * out. A key may be renamed around such a value, and the value put into a list: it stays the same.
 */
import type { Json } from '../../contracts/primitives.ts';
import { splitPointer } from '../json-pointer.ts';
import { outputPathKey } from '../output-path.ts';
import type { Candidate } from './candidate.ts';

/** Deeper than this a value is taken to hold one. */
const deepest = 100;

function holdsReference(value: Json | undefined, depth = 0): boolean {
  if (typeof value === 'string') return value.includes('://');
  if (value === null || typeof value !== 'object') return false;
  if (depth > deepest) return true;
  return Object.entries(value).some(
    ([key, child]) => key === outputPathKey || holdsReference(child, depth + 1),
  );
}

export function isProtectedChange({ pointer, oldValue, newValue }: Candidate['change']): boolean {
  if (splitPointer(pointer).includes(outputPathKey)) return true;
  return oldValue !== newValue && (holdsReference(oldValue) || holdsReference(newValue));
}
