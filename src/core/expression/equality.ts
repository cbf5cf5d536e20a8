import type { Json } from '../../contracts/primitives.ts';
import { isList, isPlainObject } from '../json-type.ts';

/** Strict and deep: same type, same items in order, same keys in any order. */
export const isEqual = (a: Json, b: Json): boolean => {
  if (a === b) return true;
  if (isList(a)) {
    return isList(b) && a.length === b.length && a.every((item, index) => isEqual(item, b[index] ?? null));
  }
  if (!isPlainObject(a) || !isPlainObject(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && isEqual(a[key] ?? null, b[key] ?? null));
};
