/** How many bytes the values of a type take as JSON text: bounds, as far as a type knows them. */
import { itemTypeOf } from './combine-types.ts';
import { type Effort, isKind, kinds, type ListType, type ObjectType, type ValueType } from './value-type.ts';

interface Bound {
  /** Chooses among the values of several kinds. */
  readonly pick: (...sizes: number[]) => number;
  /** Of a value of unknown form. */
  readonly open: number;
  readonly number: number;
  readonly characters: (type: ValueType) => number;
  readonly items: (list: ListType) => number;
  readonly names: (object: ObjectType) => Iterable<string>;
  /** Objects may have any other keys. */
  readonly isOpen: (object: ObjectType) => boolean;
}

const least: Bound = {
  pick: Math.min,
  open: 1,
  number: 1,
  characters: ({ length }) => length.least,
  items: (list) => list.least,
  names: ({ required }) => required,
  isOpen: () => false,
};

/** A control character takes six bytes. */
const longestCharacter = 6;

const most: Bound = {
  pick: Math.max,
  open: Number.POSITIVE_INFINITY,
  number: 25,
  characters: ({ length }) => length.most * longestCharacter,
  items: (list) => list.most,
  names: (object) => object.names(),
  isOpen: (object) => object.other().presence !== 'never',
};

/** Bounds recursive types, and wide ones. */
const allEffort = 2_000;
const deepest = 8;

export function leastBytes(type: ValueType): number {
  return sizeOf(type, least, { effort: { left: allEffort }, depth: 0 });
}

/** Infinity: any number. */
export function mostBytes(type: ValueType): number {
  return sizeOf(type, most, { effort: { left: allEffort }, depth: 0 });
}

interface SizePlace {
  readonly effort: Effort;
  readonly depth: number;
}

function sizeOf(type: ValueType, bound: Bound, { effort, depth }: SizePlace): number {
  effort.left -= 1;
  if (effort.left < 0 || depth > deepest) return bound.open;
  const below = { effort, depth: depth + 1 };
  const sizes: number[] = [];
  const add = (kind: number, size: () => number): void => {
    if (isKind(type, kind)) sizes.push(size());
  };
  add(kinds.null | kinds.true, () => 4);
  add(kinds.false, () => 5);
  add(kinds.number, () => pickListed(type.numbers, bound) ?? bound.number);
  add(kinds.string, () => pickListed(type.strings, bound) ?? 2 + bound.characters(type));
  add(kinds.list, () => sizeOfList(type, bound, below));
  add(kinds.object, () => sizeOfObject(type.object, bound, below));
  return sizes.length === 0 ? bound.open : bound.pick(...sizes);
}

const mostListed = 1_000;

function pickListed(values: ReadonlySet<string | number> | null, { pick }: Bound): number | undefined {
  if (values === null || values.size === 0 || values.size > mostListed) return undefined;
  return pick(...[...values].map((value) => JSON.stringify(value).length));
}

function sizeOfList(type: ValueType, bound: Bound, below: SizePlace): number {
  const count = bound.items(type.list);
  if (count === 0) return 2;
  return 1 + count * (1 + sizeOf(itemTypeOf(type), bound, below));
}

function sizeOfObject(object: ObjectType, bound: Bound, below: SizePlace): number {
  if (bound.isOpen(object)) return bound.open;
  let size = 1;
  for (const name of bound.names(object)) {
    const { type, presence } = object.property(name);
    if (presence === 'never') continue;
    size += JSON.stringify(name).length + 2 + sizeOf(type, bound, below);
  }
  return Math.max(2, size);
}
