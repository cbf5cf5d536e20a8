/**
 * Unions and intersections of types, without opening the contents of lists and objects; the type of a known value; and
 * a type in a sentence: `a string`, `a list of numbers`, `"wide" or "tall"`, `a whole number or null`.
 */

import type { Json } from '../contracts/primitives.ts';
import { isList } from '../json/values.ts';
import {
  absent,
  anyType,
  aType,
  booleanKinds,
  createObjectType,
  isKind,
  kinds,
  type ListType,
  neverType,
  nullType,
  type ObjectType,
  once,
  oncePerIndex,
  type Property,
  type ValueType,
} from './value-type.ts';

/** Larger sets of values are not listed one by one. */
const listedValues = 1_000;

/** Accepts the values of any of these types. */
export function unionOf(types: readonly ValueType[]): ValueType {
  const possible = [...new Set(types)].filter((type) => type.kinds !== 0);
  const [first] = possible;
  if (first === undefined) return neverType;
  if (possible.includes(anyType)) return anyType;
  if (possible.length === 1) return first;
  const of = (kind: number): readonly ValueType[] => possible.filter((type) => isKind(type, kind));
  return {
    kinds: possible.reduce((all, type) => all | type.kinds, 0),
    isInteger: of(kinds.number).every(({ isInteger }) => isInteger),
    numbers: uniteValues(of(kinds.number).map(({ numbers }) => numbers)),
    strings: uniteValues(of(kinds.string).map(({ strings }) => strings)),
    length: uniteLengths(of(kinds.string).map(({ length }) => length)),
    list: uniteLists(of(kinds.list).map(({ list }) => list)),
    object: uniteObjects(of(kinds.object).map(({ object }) => object)),
  };
}

function uniteLengths(lengths: readonly ValueType['length'][]): ValueType['length'] {
  if (lengths.length === 0) return anyType.length;
  return {
    least: Math.min(...lengths.map(({ least }) => least)),
    most: Math.max(...lengths.map(({ most }) => most)),
  };
}

function uniteValues<Value>(sets: readonly (ReadonlySet<Value> | null)[]): ReadonlySet<Value> | null {
  const all = new Set<Value>();
  for (const set of sets) {
    if (set === null || all.size > listedValues) return null;
    for (const value of set) all.add(value);
  }
  return all;
}

/** The parts of unions in their place, each once: unions that nest would be opened one inside the other. */
function flatten<Part extends { readonly parts?: readonly Part[] }>(types: readonly Part[]): readonly Part[] {
  return [...new Set(types.flatMap((type) => type.parts ?? [type]))];
}

function uniteLists(united: readonly ListType[]): ListType {
  const lists = flatten(united);
  const [first] = lists;
  if (first === undefined || lists.includes(anyType.list)) return anyType.list;
  if (lists.length === 1) return first;
  const positions = Math.max(...lists.map((list) => list.positions));
  const rest = once(() => unionOf(lists.filter(({ most }) => most > positions).map((list) => list.rest())));
  return {
    least: Math.min(...lists.map(({ least }) => least)),
    most: Math.max(...lists.map(({ most }) => most)),
    positions,
    item: oncePerIndex((index) =>
      index < positions ? unionOf(lists.map((list) => itemOf(list, index))) : rest(),
    ),
    rest,
    parts: lists,
  };
}

function itemOf(list: ListType, index: number): ValueType {
  return index < list.most ? list.item(index) : neverType;
}

function uniteObjects(united: readonly ObjectType[]): ObjectType {
  const objects = flatten(united);
  const [first, ...others] = objects;
  if (first === undefined || objects.includes(anyType.object)) return anyType.object;
  if (others.length === 0) return first;
  const union = createObjectType({
    names: () => objects.flatMap((object) => [...object.names()]),
    required: new Set(
      [...first.required].filter((name) => others.every(({ required }) => required.has(name))),
    ),
    named: (name) => uniteProperties(objects.map((object) => object.property(name))),
    other: () => uniteProperties(objects.map((object) => object.other())),
    isDescribed: objects.some(({ isDescribed }) => isDescribed),
  });
  return { ...union, parts: objects };
}

function uniteProperties(properties: readonly Property[]): Property {
  const possible = properties.filter(({ presence }) => presence !== 'never');
  if (possible.length === 0) return absent;
  const isCertain = properties.every(({ presence }) => presence === 'certain');
  return { type: unionOf(possible.map(({ type }) => type)), presence: isCertain ? 'certain' : 'maybe' };
}

/** Accepts the values that all of these types accept. */
export function intersectionOf(types: readonly ValueType[]): ValueType {
  const limiting = types.filter((type) => type !== anyType);
  const [first] = limiting;
  if (first === undefined) return anyType;
  if (limiting.length === 1) return first;
  const isInteger = limiting.some((type) => type.isInteger);
  const numbers = intersectValues(limiting.map((type) => type.numbers));
  const type: ValueType = {
    kinds: limiting.reduce((common, { kinds: own }) => common & own, anyType.kinds),
    isInteger,
    numbers: isInteger && numbers !== null ? new Set([...numbers].filter(Number.isInteger)) : numbers,
    strings: intersectValues(limiting.map(({ strings }) => strings)),
    length: {
      least: Math.max(...limiting.map(({ length }) => length.least)),
      most: Math.min(...limiting.map(({ length }) => length.most)),
    },
    list: intersectLists(limiting.map(({ list }) => list)),
    object: intersectObjects(limiting.map(({ object }) => object)),
  };
  return { ...type, kinds: type.kinds & ~emptyKinds(type) };
}

function emptyKinds({ numbers, strings, list }: ValueType): number {
  return (
    (numbers?.size === 0 ? kinds.number : 0) |
    (strings?.size === 0 ? kinds.string : 0) |
    (list.least > list.most ? kinds.list : 0)
  );
}

function intersectValues<Value>(sets: readonly (ReadonlySet<Value> | null)[]): ReadonlySet<Value> | null {
  const known = sets.filter((set) => set !== null);
  const [first, ...others] = known;
  if (first === undefined || others.length === 0) return first ?? null;
  return new Set([...first].filter((value) => others.every((set) => set.has(value))));
}

function intersectLists(lists: readonly ListType[]): ListType {
  const limiting = lists.filter((list) => list !== anyType.list);
  const [first] = limiting;
  if (first === undefined || limiting.length === 1) return first ?? anyType.list;
  return {
    least: Math.max(...limiting.map(({ least }) => least)),
    most: Math.min(...limiting.map(({ most }) => most)),
    positions: Math.max(...limiting.map(({ positions }) => positions)),
    item: oncePerIndex((index) => intersectionOf(limiting.map((list) => list.item(index)))),
    rest: once(() => intersectionOf(limiting.map((list) => list.rest()))),
  };
}

function intersectObjects(objects: readonly ObjectType[]): ObjectType {
  const limiting = objects.filter((object) => object !== anyType.object);
  const [first] = limiting;
  if (first === undefined || limiting.length === 1) return first ?? anyType.object;
  return createObjectType({
    names: () => limiting.flatMap((object) => [...object.names()]),
    required: new Set(limiting.flatMap(({ required }) => [...required])),
    named: (name) => intersectProperties(limiting.map((object) => object.property(name))),
    other: () => intersectProperties(limiting.map((object) => object.other())),
    isDescribed: limiting.some(({ isDescribed }) => isDescribed),
  });
}

function intersectProperties(properties: readonly Property[]): Property {
  if (properties.some(({ presence }) => presence === 'never')) return absent;
  const isCertain = properties.some(({ presence }) => presence === 'certain');
  const type = intersectionOf(properties.map((property) => property.type));
  if (type.kinds === 0 && !isCertain) return absent;
  return { type, presence: isCertain ? 'certain' : 'maybe' };
}

/** The type that accepts only this value. */
export function typeOfValue(value: Json): ValueType {
  switch (typeof value) {
    case 'boolean':
      return aType({ kinds: value ? kinds.true : kinds.false });
    case 'number':
      return aType({ kinds: kinds.number, isInteger: Number.isInteger(value), numbers: new Set([value]) });
    case 'string':
      return aType({ kinds: kinds.string, strings: new Set([value]) });
    default:
      if (value === null) return nullType;
      return isList(value)
        ? typeOfItems(value.map((item) => () => typeOfValue(item)))
        : typeOfFields(
            new Map(Object.entries(value).map(([name, field]) => [name, () => typeOfValue(field)])),
          );
  }
}

/** The type of a list of exactly these items. */
export function typeOfItems(items: readonly (() => ValueType)[]): ValueType {
  return aType({
    kinds: kinds.list,
    list: {
      least: items.length,
      most: items.length,
      positions: items.length,
      item: (index) => items[index]?.() ?? neverType,
      rest: () => neverType,
    },
  });
}

/** The type of an object of exactly these fields. */
export function typeOfFields(fields: ReadonlyMap<string, () => ValueType>): ValueType {
  return aType({
    kinds: kinds.object,
    object: createObjectType({
      names: () => fields.keys(),
      required: new Set(fields.keys()),
      named: (name) => ({ type: fields.get(name)?.() ?? neverType, presence: 'certain' }),
      other: () => absent,
      isDescribed: true,
    }),
  });
}

/** The type of all items of its lists. */
export function itemTypeOf({ list }: ValueType): ValueType {
  const positions = Math.min(list.positions, list.most);
  if (positions > toldPositions) return anyType;
  const own = Array.from({ length: positions }, (_, index) => list.item(index));
  return unionOf(list.most > list.positions ? [...own, list.rest()] : own);
}

const toldPositions = 1_000;

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
