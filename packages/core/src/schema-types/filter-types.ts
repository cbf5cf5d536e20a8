/** The types that filters take and yield. */
import type { AnyFilterName, FilterName } from '../expression/filters.ts';
import { itemTypeOf, unionOf } from './combine-types.ts';
import { missingValue, someValue, type TypedValue, unknownValue } from './path-type.ts';
import {
  anyType,
  aType,
  booleanKinds,
  booleanType,
  createObjectType,
  integerType,
  isKind,
  kinds,
  type ListType,
  listOf,
  neverType,
  nullType,
  numberType,
  type Property,
  scalarKinds,
  stringType,
  type ValueType,
  withoutKinds,
} from './value-type.ts';

/** The arguments of a filter, with the types of those that are expressions. */
interface TypedArguments {
  readonly argument: string | null;
  readonly values: readonly ValueType[];
}

export interface FilterType {
  readonly takes: number;
  readonly words: string;
  /** The kinds of items that a list must have, if it has any. */
  readonly items?: number;
  /** The kinds of its arguments that are expressions. */
  readonly arguments?: number;
  /** Its author knows that it has a result: nothing is reported where that may be missing. */
  readonly isAsserted?: true;
  /** The result for an input that it accepts. */
  readonly yields: (type: ValueType, given: TypedArguments) => TypedValue;
}

function only(type: ValueType, own: number): boolean {
  return (type.kinds & ~own) === 0;
}

function itemAt(type: ValueType, end: 'first' | 'last'): TypedValue {
  const { list } = type;
  if (list.most === 0) return missingValue;
  return {
    type: end === 'first' ? list.item(0) : itemTypeOf(type),
    missing: list.least > 0 ? 'no' : 'maybe',
  };
}

/** As `[*]` and a field: a field that the items do not describe is unknown. */
function mapType(type: ValueType, { argument }: TypedArguments): TypedValue {
  const item = itemTypeOf(type);
  const name = String(argument);
  const { object } = item;
  const { type: field, presence } = object.property(name);
  const isTold = object.names().has(name) || object.other().type !== anyType;
  if (item === anyType || (presence === 'maybe' && !isTold)) return unknownValue;
  const isAbsent = presence === 'never' && isKind(item, kinds.object) && type.list.most > 0;
  if (isAbsent && !isKind(item, kinds.null)) return missingValue;
  const from = isKind(item, kinds.object) ? field : neverType;
  const taken = isKind(item, kinds.null) ? unionOf([from, nullType]) : from;
  return { type: listOf(taken, type.list), missing: presence === 'maybe' || isAbsent ? 'maybe' : 'no' };
}

/** Some of the items. */
function someOf(type: ValueType, least = 0): TypedValue {
  return someValue(
    listOf(itemTypeOf(type), { least: Math.min(least, type.list.least), most: type.list.most }),
  );
}

function extremeType(type: ValueType): TypedValue {
  if (type.list.most === 0) return missingValue;
  return { type: itemTypeOf(type), missing: type.list.least > 0 ? 'no' : 'maybe' };
}

function concatType(type: ValueType, { values: [other = anyType] }: TypedArguments): TypedValue {
  const item = unionOf([itemTypeOf(type), itemTypeOf(other)]);
  return someValue(
    listOf(item, { least: type.list.least + other.list.least, most: type.list.most + other.list.most }),
  );
}

function sliceType(type: ValueType): TypedValue {
  const parts = [
    ...(isKind(type, kinds.list) ? [someOf(type).type] : []),
    ...(isKind(type, kinds.string) ? [stringType] : []),
  ];
  return someValue(unionOf(parts));
}

function flattenType(type: ValueType): TypedValue {
  const item = itemTypeOf(type);
  if (item === anyType) return someValue(listOf(anyType));
  const inner = isKind(item, kinds.list) ? [itemTypeOf(item)] : [];
  return someValue(listOf(unionOf([...inner, withoutKinds(item, kinds.list)])));
}

/** By a place of unknown value, any of the items or members. */
function placeType(type: ValueType, { values: [place = anyType] }: TypedArguments): TypedValue {
  const [key, other] = place.strings ?? [];
  const isKey = key !== undefined && other === undefined && !isKind(type, kinds.list);
  if (isKey) {
    const { type: member, presence } = type.object.property(key);
    if (presence === 'never') return missingValue;
    return { type: member, missing: presence === 'certain' ? 'no' : 'maybe' };
  }
  const { object, list } = type;
  const isEmpty = list.most === 0 && !isKind(type, kinds.object);
  if (isEmpty) return missingValue;
  const members = [...object.names()].map((name) => object.property(name).type);
  const items = isKind(type, kinds.list) ? [itemTypeOf(type)] : [];
  const taken = isKind(type, kinds.object) ? [...members, object.other().type] : [];
  return { type: unionOf([...items, ...taken]), missing: 'maybe' };
}

/** The least and the most of numbers that are listed. */
function boundsOf({ numbers }: ValueType): { readonly least?: number; readonly most?: number } {
  const counts = [...(numbers ?? [])].filter((count) => count >= 0);
  return counts.length === 0 ? {} : { least: Math.min(...counts), most: Math.max(...counts) };
}

/** A row has the keys of the object. A key that may be missing makes one row of each, or as many as its list has items. */
function combinationsType({ object }: ValueType): TypedValue {
  const rowProperty = ({ type, presence }: Property): Property => ({ type: itemTypeOf(type), presence });
  const row = createObjectType({
    names: object.names,
    required: object.required,
    named: (name) => rowProperty(object.property(name)),
    other: () => rowProperty(object.other()),
    isDescribed: object.isDescribed,
  });
  const isOpen = object.other().presence !== 'never';
  const counts = [...object.names()].map((name) => countFactors(object.property(name)));
  const least = isOpen ? 0 : counts.reduce((count, factor) => count * factor.least, 1);
  const most = isOpen ? Number.POSITIVE_INFINITY : counts.reduce((count, factor) => count * factor.most, 1);
  return someValue(listOf(aType({ kinds: kinds.object, object: row }), { least, most }));
}

function countFactors({ type: { list }, presence }: Property): Pick<ListType, 'least' | 'most'> {
  if (presence === 'never') return { least: 1, most: 1 };
  if (presence === 'certain') return list;
  return { least: Math.min(1, list.least), most: Math.max(1, list.most) };
}

const sortable = kinds.number | kinds.string;
const aText = { takes: kinds.string, words: 'a string', yields: () => someValue(stringType) } as const;
const aNumber = { takes: kinds.number, words: 'a number', yields: () => someValue(integerType) } as const;
const aMoment = {
  takes: kinds.number | kinds.string,
  words: 'a moment, or milliseconds since 1970',
} as const;

const filterTypes: Readonly<Record<Exclude<FilterName, 'default'>, FilterType>> = {
  json: { takes: anyType.kinds, words: 'anything', yields: () => someValue(stringType) },
  string: {
    takes: scalarKinds,
    words: 'a string, number or boolean',
    yields: (type) => someValue(only(type, kinds.string) ? type : stringType),
  },
  number: {
    takes: kinds.number | kinds.string,
    words: 'a number or the text of one',
    yields: (type) => someValue(only(type, kinds.number) ? type : numberType),
  },
  bool: {
    takes: booleanKinds | kinds.string,
    words: 'a boolean, "true" or "false"',
    yields: (type) => someValue(only(type, booleanKinds) ? type : booleanType),
  },
  length: {
    takes: kinds.string | kinds.list | kinds.object,
    words: 'a string, list or object',
    yields: () => someValue(integerType),
  },
  first: { takes: kinds.list, words: 'a list', yields: (type) => itemAt(type, 'first') },
  last: { takes: kinds.list, words: 'a list', yields: (type) => itemAt(type, 'last') },
  join: {
    takes: kinds.list,
    words: 'a list of strings, numbers and booleans',
    items: scalarKinds,
    yields: () => someValue(stringType),
  },
  basename: { takes: kinds.string, words: 'a string', yields: () => someValue(stringType) },
  tokens: { takes: anyType.kinds, words: 'anything', yields: () => someValue(integerType) },
  map: { takes: kinds.list, words: 'a list of objects', items: kinds.object | kinds.null, yields: mapType },
  where: {
    takes: kinds.list,
    words: 'a list of objects',
    items: kinds.object | kinds.null,
    yields: (type) => someOf(type),
  },
  concat: { takes: kinds.list, words: 'a list', arguments: kinds.list, yields: concatType },
  slice: {
    takes: kinds.list | kinds.string,
    words: 'a list or a string',
    arguments: kinds.number,
    yields: sliceType,
  },
  unique: { takes: kinds.list, words: 'a list', yields: (type) => someOf(type, 1) },
  flatten: { takes: kinds.list, words: 'a list', yields: flattenType },
  at: {
    takes: kinds.list | kinds.object | kinds.null,
    words: 'a list or an object',
    arguments: kinds.number | kinds.string,
    isAsserted: true,
    yields: placeType,
  },
  range: {
    takes: kinds.number,
    words: 'a whole number',
    arguments: kinds.number,
    yields: (type) => someValue(listOf(integerType, boundsOf(type))),
  },
  combinations: { takes: kinds.object, words: 'an object of lists', yields: combinationsType },
  sort: {
    takes: kinds.list,
    words: 'a list of numbers or of strings',
    items: sortable,
    yields: (type) => someOf(type, type.list.least),
  },
  sort_by: {
    takes: kinds.list,
    words: 'a list of objects',
    items: kinds.object,
    yields: (type) => someOf(type, type.list.least),
  },
  reverse: { takes: kinds.list, words: 'a list', yields: (type) => someOf(type, type.list.least) },
  sum: {
    takes: kinds.list,
    words: 'a list of numbers',
    items: kinds.number,
    yields: (type) => someValue(itemTypeOf(type).isInteger ? integerType : numberType),
  },
  min: { takes: kinds.list, words: 'a list of numbers or of strings', items: sortable, yields: extremeType },
  max: { takes: kinds.list, words: 'a list of numbers or of strings', items: sortable, yields: extremeType },
  keys: { takes: kinds.object, words: 'an object', yields: () => someValue(listOf(stringType)) },
  values: { takes: kinds.object, words: 'an object', yields: () => someValue(listOf(anyType)) },
  lower: aText,
  upper: aText,
  trim: aText,
  split: { ...aText, arguments: kinds.string, yields: () => someValue(listOf(stringType, { least: 1 })) },
  replace: { ...aText, arguments: kinds.string },
  parse_json: { ...aText, yields: () => someValue(anyType) },
  round: {
    ...aNumber,
    arguments: kinds.number,
    yields: (_, { values }) => someValue(values.length === 0 ? integerType : numberType),
  },
  floor: aNumber,
  ceil: aNumber,
  abs: { ...aNumber, yields: (type) => someValue(type.isInteger ? integerType : numberType) },
  timestamp: { ...aMoment, yields: () => someValue(integerType) },
  format_date: { ...aMoment, yields: () => someValue(stringType) },
  add_duration: { ...aMoment, arguments: kinds.string, yields: () => someValue(stringType) },
};

/** Null for `default`, which is typed as `??`, and for a filter that pipelines do not have. */
export function filterTypeOf(name: AnyFilterName): FilterType | null {
  return Object.hasOwn(filterTypes, name) ? filterTypes[name as keyof typeof filterTypes] : null;
}
