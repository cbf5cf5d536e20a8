import type { AnyFilterName } from '../expression/dialect.ts';
import type { FilterName } from '../expression/filters.ts';
import { itemTypeOf } from './json-value-type.ts';
import { missingValue, someValue, type TypedValue } from './typed-value.ts';
import {
  anyType,
  booleanKinds,
  booleanType,
  integerType,
  isKind,
  kinds,
  numberType,
  scalarKinds,
  stringType,
  type ValueType,
} from './value-type.ts';

interface FilterType {
  readonly takes: number;
  readonly words: string;
  /** What it yields for a value that it takes. */
  readonly yields: (type: ValueType) => TypedValue;
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

const filterTypes: Readonly<Record<FilterName, FilterType>> = {
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
  join: { takes: kinds.list, words: 'a list', yields: () => someValue(stringType) },
  basename: { takes: kinds.string, words: 'a string', yields: () => someValue(stringType) },
};

/** Null for a filter that pipelines do not have. */
export function filterTypeOf(name: AnyFilterName): FilterType | null {
  return Object.hasOwn(filterTypes, name) ? filterTypes[name as FilterName] : null;
}

/** Whether `join` can fail with nothing but empty lists. */
export function isJoinable(type: ValueType): boolean {
  return type.list.most === 0 || isKind(itemTypeOf(type), scalarKinds);
}
