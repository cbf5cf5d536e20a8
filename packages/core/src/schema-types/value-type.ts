/**
 * The known facts about a JSON value before it exists: a set of values that includes every possible one, and maybe
 * more. So two types without a common value never fit (an overlap of `none` is certain). A common value proves nothing
 * (`some` is not certain): types are wider than the values they describe, and deep ones are not compared to their end.
 * Lists and objects are opened on demand, because schemas may be recursive.
 */

/**
 * One bit each; a type has the bits of its values. `true` and `false` are separate, so that a constant one is known.
 */
export const kinds = { null: 1, true: 2, false: 4, number: 8, string: 16, list: 32, object: 64 } as const;

export const booleanKinds: number = kinds.true | kinds.false;
/** The kinds that convert to text. */
export const scalarKinds: number = booleanKinds | kinds.number | kinds.string;
const allKinds = 127;

/** Each part describes only the values of its kind. */
export interface ValueType {
  readonly kinds: number;
  /** All its numbers are whole. */
  readonly isInteger: boolean;
  /** All its numbers, where they can be listed. */
  readonly numbers: ReadonlySet<number> | null;
  readonly strings: ReadonlySet<string> | null;
  /** Bounds of the number of characters of its strings. */
  readonly length: { readonly least: number; readonly most: number };
  readonly list: ListType;
  readonly object: ObjectType;
}

export interface ListType {
  /** Bounds of its length. */
  readonly least: number;
  readonly most: number;
  /** The number of items with a type of their own. */
  readonly positions: number;
  readonly item: (index: number) => ValueType;
  /** The type of the items after those. */
  readonly rest: () => ValueType;
  /** Of a union: what it unites. */
  readonly parts?: readonly ListType[];
}

type Presence = 'certain' | 'maybe' | 'never';

export interface Property {
  readonly type: ValueType;
  readonly presence: Presence;
}

export interface ObjectType {
  /** Keys that the type describes. */
  readonly names: () => ReadonlySet<string>;
  readonly required: ReadonlySet<string>;
  readonly property: (name: string) => Property;
  /** The property of every other key. */
  readonly other: () => Property;
  /** False: nothing is known about its keys, not even that they are undescribed. */
  readonly isDescribed: boolean;
  /** Of a union: what it unites. */
  readonly parts?: readonly ObjectType[];
}

const none: ReadonlySet<string> = new Set();

const anyList: ListType = {
  least: 0,
  most: Number.POSITIVE_INFINITY,
  positions: 0,
  item: () => anyType,
  rest: () => anyType,
};

function anyProperty(): Property {
  return { type: anyType, presence: 'maybe' };
}

const anyObject: ObjectType = {
  names: () => none,
  required: none,
  property: anyProperty,
  other: anyProperty,
  isDescribed: false,
};

export const anyType: ValueType = {
  kinds: allKinds,
  isInteger: false,
  numbers: null,
  strings: null,
  length: { least: 0, most: Number.POSITIVE_INFINITY },
  list: anyList,
  object: anyObject,
};

export function aType(parts: Partial<ValueType>): ValueType {
  return { ...anyType, ...parts };
}

export const neverType: ValueType = aType({ kinds: 0 });
export const nullType: ValueType = aType({ kinds: kinds.null });
export const booleanType: ValueType = aType({ kinds: booleanKinds });
export const numberType: ValueType = aType({ kinds: kinds.number });
export const integerType: ValueType = aType({ kinds: kinds.number, isInteger: true });
export const stringType: ValueType = aType({ kinds: kinds.string });
export const objectType: ValueType = aType({ kinds: kinds.object });

export function enumType(values: readonly string[]): ValueType {
  return aType({ kinds: kinds.string, strings: new Set(values) });
}

export function listOf(rest: ValueType, { least = 0, most = Number.POSITIVE_INFINITY } = {}): ValueType {
  return aType({
    kinds: kinds.list,
    list: { least, most, positions: 0, item: () => rest, rest: () => rest },
  });
}

export const absent: Property = { type: neverType, presence: 'never' };

export function isKind(type: ValueType, wanted: number): boolean {
  return (type.kinds & wanted) !== 0;
}

/** The type without the values of some kinds. */
export function withoutKinds(type: ValueType, unwanted: number): ValueType {
  return isKind(type, unwanted) ? { ...type, kinds: type.kinds & ~unwanted } : type;
}

interface ObjectParts {
  readonly names: () => Iterable<string>;
  readonly required: ReadonlySet<string>;
  /** Called once for each of the names. */
  readonly named: (name: string) => Property;
  /** Called once. */
  readonly other: () => Property;
  readonly isDescribed: boolean;
}

/** Caches results, so that a union of many schemas is searched once for each key. */
export function createObjectType({ names, required, named, other, isDescribed }: ObjectParts): ObjectType {
  const known = new Map<string, Property>();
  const readNames = once(() => new Set(names()));
  const readOther = once(other);
  return {
    names: readNames,
    required,
    property: (name) => {
      const before = known.get(name);
      if (before !== undefined) return before;
      if (!readNames().has(name)) return readOther();
      const property = named(name);
      known.set(name, property);
      return property;
    },
    other: readOther,
    isDescribed,
  };
}

export function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** Makes each item once: in a recursive union, items that are made again and again double with the depth. */
export function oncePerIndex<Value>(make: (index: number) => Value): (index: number) => Value {
  const known = new Map<number, Value>();
  return (index) => {
    const value = known.get(index) ?? make(index);
    known.set(index, value);
    return value;
  };
}

/** `only_empty`: only lists without items. */
type Overlap = 'none' | 'only_empty' | 'some';

/** The remaining number of comparisons; shared by all comparisons of a definition. */
export interface Effort {
  left: number;
}

const deepest = 6;
/** Items of a list that are compared one by one. */
const comparedItems = 8;

/**
 * Whether two types have a value in common. `none` is certain; `some` is not: types are wider than the values they
 * describe, and deep ones are not compared to their end.
 */
export function overlapOf(a: ValueType, b: ValueType, effort: Effort): Overlap {
  return overlapAt(a, b, { effort, depth: 0 });
}

interface Comparing {
  readonly effort: Effort;
  readonly depth: number;
}

function overlapAt(a: ValueType, b: ValueType, { effort, depth }: Comparing): Overlap {
  effort.left -= 1;
  if (a === b && a.kinds !== 0) return 'some';
  const common = a.kinds & b.kinds;
  if ((common & (kinds.null | kinds.true | kinds.false)) !== 0) return 'some';
  if ((common & kinds.string) !== 0 && haveCommonString(a, b)) return 'some';
  if ((common & kinds.number) !== 0 && haveCommonNumber(a, b)) return 'some';
  if ((common & (kinds.list | kinds.object)) === 0) return 'none';
  if (depth >= deepest || effort.left < 0) return 'some';
  const below: Comparing = { effort, depth: depth + 1 };
  const lists = (common & kinds.list) === 0 ? 'none' : compareLists(a.list, b.list, below);
  if (lists === 'some') return lists;
  const objects = (common & kinds.object) === 0 ? 'none' : compareObjects(a.object, b.object, below);
  return objects === 'none' ? lists : objects;
}

function haveCommonString(a: ValueType, b: ValueType): boolean {
  return haveCommon(a.strings, b.strings);
}

function haveCommonNumber(a: ValueType, b: ValueType): boolean {
  const isAllowed = (value: number): boolean => !(a.isInteger || b.isInteger) || Number.isInteger(value);
  const known = [...(a.numbers ?? b.numbers ?? [])];
  if (a.numbers === null && b.numbers === null) return true;
  return known.some((value) => isAllowed(value) && (b.numbers === null || b.numbers.has(value)));
}

function haveCommon<Value>(a: ReadonlySet<Value> | null, b: ReadonlySet<Value> | null): boolean {
  if (a === null || b === null) return (a ?? b)?.size !== 0;
  return [...a].some((value) => b.has(value));
}

function compareLists(a: ListType, b: ListType, comparing: Comparing): Overlap {
  const least = Math.max(a.least, b.least);
  const most = Math.min(a.most, b.most);
  if (least > most) return 'none';
  if (most === 0) return 'some';
  let worst: Overlap = 'some';
  for (let index = 0; index < Math.min(Math.max(1, least), comparedItems); index++) {
    const items = overlapAt(a.item(index), b.item(index), comparing);
    if (items === 'none') return least === 0 ? 'only_empty' : 'none';
    if (items === 'only_empty') worst = items;
  }
  return worst;
}

function compareObjects(a: ObjectType, b: ObjectType, comparing: Comparing): Overlap {
  let worst: Overlap = 'some';
  for (const name of new Set([...a.required, ...b.required])) {
    const [own, other] = [a.property(name), b.property(name)];
    if (own.presence === 'never' || other.presence === 'never') return 'none';
    const values = overlapAt(own.type, other.type, comparing);
    if (values === 'none') return values;
    if (values === 'only_empty') worst = values;
  }
  return worst;
}
