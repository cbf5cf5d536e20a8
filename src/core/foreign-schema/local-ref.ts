import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { splitPointer } from '../json-pointer.ts';
import { isList, isPlainObject } from '../json-type.ts';

/** What `#`, `#/a/b` or `#anchor` names inside a schema; undefined when nothing, or when it is not local. */
export function resolveLocalRef(root: JsonObject, ref: string): Json | undefined {
  if (!ref.startsWith('#')) return undefined;
  const fragment = decodeFragment(ref.slice(1));
  if (fragment === '') return root;
  return fragment.startsWith('/') ? walkPointer(root, fragment) : findAnchor(root, fragment);
}

function decodeFragment(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}

function walkPointer(root: JsonObject, pointer: string): Json | undefined {
  let value: Json | undefined = root;
  for (const segment of splitPointer(pointer)) {
    if (value === undefined || value === null || typeof value !== 'object') return undefined;
    if (isList(value)) value = value[Number(segment)];
    else value = Object.hasOwn(value, segment) ? value[segment] : undefined;
  }
  return value;
}

function findAnchor(value: Json, anchor: string): JsonObject | undefined {
  if (value === null || typeof value !== 'object') return undefined;
  if (isPlainObject(value) && (value.$anchor === anchor || value.$dynamicAnchor === anchor)) return value;
  for (const child of Object.values(value)) {
    const found = findAnchor(child, anchor);
    if (found !== undefined) return found;
  }
  return undefined;
}
