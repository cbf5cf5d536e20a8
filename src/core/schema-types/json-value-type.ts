import type { Json } from '../../contracts/primitives.ts';
import { isList } from '../json-type.ts';
import { unionOf } from './combine-types.ts';
import { createObjectType } from './object-type.ts';
import { absent, anyType, aType, kinds, neverType, nullType, type ValueType } from './value-type.ts';

/** The type that only this value has. */
export function typeOfValue(value: Json): ValueType {
  switch (typeof value) {
    case 'boolean':
      return aType({ kinds: value ? kinds.true : kinds.false });
    case 'number':
      return aType({
        kinds: kinds.number,
        isInteger: Number.isInteger(value),
        numbers: new Set([value]),
      });
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

/** The type of a list of just these items. */
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

/** The type of an object of just these fields. */
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
