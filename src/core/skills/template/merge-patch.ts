/** JSON Merge Patch (RFC 7386): objects merge, null removes, anything else replaces. */
import type { Json } from '../../../contracts/primitives.ts';
import { isPlainObject } from '../../json-type.ts';

export function applyMergePatch(target: Json, patch: Json): Json {
  if (!isPlainObject(patch)) return patch;
  const merged = new Map(isPlainObject(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, applyMergePatch(merged.get(key) ?? null, value));
  }
  return Object.fromEntries(merged);
}
