import type { ObjectType, Property } from './value-type.ts';

interface ObjectParts {
  readonly names: () => Iterable<string>;
  readonly required: ReadonlySet<string>;
  /** Asked once for each of the names. */
  readonly named: (name: string) => Property;
  /** Asked once. */
  readonly other: () => Property;
  readonly isDescribed: boolean;
}

/** Remembers what was asked, so that a union of many schemas is looked through once for each key. */
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
