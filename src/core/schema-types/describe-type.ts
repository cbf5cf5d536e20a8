/** A type in a sentence: `a string`, `a list of numbers`, `"wide" or "tall"`, `a whole number or null`. */
import { itemTypeOf } from './json-value-type.ts';
import { booleanKinds, isKind, kinds, type ValueType } from './value-type.ts';

const shownValues = 6;

export function describeType(type: ValueType): string {
  const parts = partsOf(type);
  if (parts.length === 0) return 'nothing';
  if (parts.length >= 6 && isOpen(type)) return 'anything';
  return parts.length === 1 ? (parts[0] ?? '') : `${parts.slice(0, -1).join(', ')} or ${parts.at(-1)}`;
}

function isOpen({ strings, numbers }: ValueType): boolean {
  return strings === null && numbers === null;
}

function partsOf(type: ValueType): string[] {
  const has = (kind: number): boolean => isKind(type, kind);
  return [
    ...(has(kinds.string) ? describeValues(type.strings, 'a string') : []),
    ...(has(kinds.number)
      ? describeValues(type.numbers, type.isInteger ? 'a whole number' : 'a number')
      : []),
    ...describeBooleans(type.kinds & booleanKinds),
    ...(has(kinds.list) ? [describeList(type)] : []),
    ...(has(kinds.object) ? ['an object'] : []),
    ...(has(kinds.null) ? ['null'] : []),
  ];
}

function describeValues(values: ReadonlySet<string | number> | null, otherwise: string): string[] {
  return values === null || values.size > shownValues
    ? [otherwise]
    : [...values].map((value) => JSON.stringify(value).slice(0, 40));
}

function describeBooleans(own: number): string[] {
  if (own === 0) return [];
  return [own === booleanKinds ? 'a boolean' : String(own === kinds.true)];
}

const plurals: ReadonlyMap<string, string> = new Map([
  ['a string', 'strings'],
  ['a number', 'numbers'],
  ['a whole number', 'whole numbers'],
  ['a boolean', 'booleans'],
  ['an object', 'objects'],
]);

function describeList(type: ValueType): string {
  const items = itemTypeOf(type);
  const [only, second] = isKind(items, kinds.list) ? [] : partsOf(items);
  const plural = second === undefined && only !== undefined ? plurals.get(only) : undefined;
  return plural === undefined ? 'a list' : `a list of ${plural}`;
}
