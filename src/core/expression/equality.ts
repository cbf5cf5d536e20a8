import type { Json } from '../../contracts/primitives.ts';
import { isList, isPlainObject } from '../json-type.ts';
import { expressionLimits } from './limits.ts';

type Pair = readonly [Json, Json];

/**
 * Strict and deep: same type, same items in order, same keys in any order; values of any depth.
 * @param charge told of the characters that are about to be compared, and of each item as some; may throw
 */
export function isEqual(a: Json, b: Json, charge: (amount: number) => void = () => {}): boolean {
  const pairs: Pair[] = [[a, b]];
  for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
    charge(expressionLimits.charactersPerItem);
    const parts = comparePair(pair, charge);
    if (parts === null) return false;
    for (const part of parts) pairs.push(part);
  }
  return true;
}

const nothing: readonly Pair[] = [];

/** What is left to compare; null when the two differ. */
function comparePair([a, b]: Pair, charge: (amount: number) => void): readonly Pair[] | null {
  if (typeof a === 'string' && typeof b === 'string' && a.length === b.length) charge(a.length);
  if (a === b) return nothing;
  if (isList(a)) {
    return isList(b) && a.length === b.length ? a.map((item, index): Pair => [item, b[index] ?? null]) : null;
  }
  if (!isPlainObject(a) || !isPlainObject(b)) return null;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length || !keys.every((key) => Object.hasOwn(b, key))) return null;
  return keys.map((key): Pair => [a[key] ?? null, b[key] ?? null]);
}
