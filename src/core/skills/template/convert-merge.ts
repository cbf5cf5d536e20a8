/** A merge patch cannot say what it expects to find; as a JSON Patch against the input it was made for, it can. */
import type { Json, JsonObject } from '../../../contracts/primitives.ts';
import { isEqual } from '../../expression/equality.ts';
import { extendPointer } from '../../json-pointer.ts';
import { isPlainObject } from '../../json-type.ts';
import type { PatchOperation } from './json-patch.ts';
import { isDerived, isQuoted, quoteValue } from './template.ts';

/**
 * @param merge may hold expressions; those replace without a guard
 * @returns the text of the JSON Patch template; null when the merge patch changes nothing
 */
export function convertMergePatch(merge: Json, original: Json): string | null {
  const operations = convert(merge, original, '');
  return operations.length === 0 ? null : JSON.stringify(operations);
}

function convert(merge: Json, before: Json, path: string): PatchOperation[] {
  if (isBranch(merge) && isPlainObject(before)) {
    return Object.entries(merge).flatMap(([key, value]) =>
      convertMember(value, ownValue(before, key), extendPointer(path, key)),
    );
  }
  const value = isBranch(merge) ? dropNulls(merge) : merge;
  if (isDerived(value)) return [{ op: 'replace', path, value }];
  if (isEqual(unquote(value), before)) return [];
  return [guard(before, path), { op: 'replace', path, value }];
}

function ownValue(object: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** @param old undefined where nothing stood */
function convertMember(merge: Json, old: Json | undefined, path: string): PatchOperation[] {
  if (old !== undefined && merge !== null) return convert(merge, old, path);
  if (old !== undefined) return [guard(old, path), { op: 'remove', path }];
  return merge === null ? [] : [{ op: 'add', path, value: dropNulls(merge) }];
}

function isBranch(merge: Json): merge is JsonObject {
  return isPlainObject(merge) && !isQuoted(merge);
}

function guard(value: Json, path: string): PatchOperation {
  return { op: 'test', path, value: quoteValue(value) };
}

/** What a merge patch builds where nothing stood; a quoted value is kept as it is. */
function dropNulls(merge: Json): Json {
  if (!isBranch(merge)) return merge;
  const kept = Object.entries(merge).filter(([, value]) => value !== null);
  return Object.fromEntries(kept.map(([key, value]) => [key, dropNulls(value)]));
}

function unquote(value: Json): Json {
  return isPlainObject(value) && Object.hasOwn(value, '$literal') ? (value.$literal ?? null) : value;
}
