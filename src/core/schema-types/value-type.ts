/**
 * What is known about a JSON value before it is there: a set of values that holds every one it can be, and maybe more.
 * So two types without a common value never fit, whatever happens; that they have one says nothing for certain.
 * Lists and objects are opened when somebody looks into them: schemas may lead back to themselves.
 */

/** One bit each; a type has those of its values. `true` and `false` are two, so that a constant one is known. */
export const kinds = { null: 1, true: 2, false: 4, number: 8, string: 16, list: 32, object: 64 } as const;

export const booleanKinds: number = kinds.true | kinds.false;
/** What text can be made of. */
export const scalarKinds: number = booleanKinds | kinds.number | kinds.string;
const allKinds = 127;

/** Its parts tell of the values of their kind only. */
export interface ValueType {
  readonly kinds: number;
  /** All its numbers are whole. */
  readonly isInteger: boolean;
  /** All its numbers, where they are known one by one. */
  readonly numbers: ReadonlySet<number> | null;
  readonly strings: ReadonlySet<string> | null;
  readonly list: ListType;
  readonly object: ObjectType;
}

export interface ListType {
  /** Bounds of its length. */
  readonly least: number;
  readonly most: number;
  /** How many items have a type of their own. */
  readonly positions: number;
  readonly item: (index: number) => ValueType;
  /** The type of the items after those. */
  readonly rest: () => ValueType;
}

export type Presence = 'certain' | 'maybe' | 'never';

export interface Property {
  readonly type: ValueType;
  readonly presence: Presence;
}

export interface ObjectType {
  /** Keys that something is said about. */
  readonly names: () => ReadonlySet<string>;
  readonly required: ReadonlySet<string>;
  readonly property: (name: string) => Property;
  /** The property of every key without a name here. */
  readonly other: () => Property;
  /** False: nothing is known about its keys, not even that nothing is said about them. */
  readonly isDescribed: boolean;
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

/** Without the values of some kinds. */
export function withoutKinds(type: ValueType, unwanted: number): ValueType {
  return isKind(type, unwanted) ? { ...type, kinds: type.kinds & ~unwanted } : type;
}
