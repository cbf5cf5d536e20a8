import type { Json } from '../contracts/primitives.ts';
import { extendPointer } from '../core/json-pointer.ts';

/** NUL, and halves of surrogate pairs: YAML and JSON escapes can write them, Postgres cannot hold them. */
const unstorable = /[\0\p{Surrogate}]/u;

/** Pointer of the first text that cannot be stored, or of the object with such a key; null when there is none. */
export function findUnstorableText(value: Json): string | null {
  const path = findPath(value);
  return path === null ? null : extendPointer('', ...path.reverse());
}

/** From the inside out. */
function findPath(value: Json): string[] | null {
  if (typeof value === 'string') return unstorable.test(value) ? [] : null;
  if (typeof value !== 'object' || value === null) return null;
  for (const [key, below] of Object.entries(value)) {
    if (unstorable.test(key)) return [];
    const path = findPath(below);
    if (path !== null) {
      path.push(key);
      return path;
    }
  }
  return null;
}
