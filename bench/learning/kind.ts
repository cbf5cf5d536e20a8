/** A kind of failure: which field is wrong, how, the message about it, the cure, and who knows it. */
import { isDeepStrictEqual } from 'node:util';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { Random } from '../shared/random.ts';
import { openCapabilities } from './capabilities.ts';

/** What can be learnt of it: a rule for any value, single values, or only a hint for a model. */
export type Sort = 'rule' | 'value' | 'advice';
export type Level = 1 | 2 | 3 | 4;

/** One failure's part of an input. */
export interface Fault {
  /** Fields, by dotted path, of the input as it was written; undefined = not there. */
  readonly wrong: Readonly<Record<string, Json | undefined>>;
  readonly right: Readonly<Record<string, Json | undefined>>;
  /** The message of the capability about an input that it refuses. */
  readonly say: (input: JsonObject) => string;
  /** Whether it takes an input that is not the right one. */
  readonly takes: (input: JsonObject) => boolean;
}

export interface Kind {
  readonly name: string;
  readonly capability: string;
  readonly sort: Sort;
  /** The lowest level whose model knows the cure. */
  readonly knownFrom: Level;
  readonly cure: string;
  readonly draw: (random: Random) => Fault;
}

export function get(input: JsonObject, path: string): Json | undefined {
  return path.split('.').reduce<Json | undefined>((at, key) => (at as JsonObject | undefined)?.[key], input);
}

/** A copy with the fields as given; undefined removes. */
export function put(input: JsonObject, fields: Readonly<Record<string, Json | undefined>>): JsonObject {
  const copy = structuredClone(input) as Record<string, Json>;
  for (const [path, value] of Object.entries(fields)) {
    const keys = path.split('.');
    const last = keys.pop() ?? '';
    const parent = keys.reduce((at, key) => at[key] as Record<string, Json>, copy);
    if (value === undefined) delete parent[last];
    else parent[last] = value;
  }
  return copy;
}

export function isSame(a: Json, b: Json): boolean {
  return isDeepStrictEqual(a, b);
}

interface FieldKind extends Omit<Kind, 'draw'> {
  /** Dotted path. */
  readonly at: string;
  readonly draw: (random: Random) => readonly [wrong: Json, right: Json];
  /** The message of the capability about the present value; not needed where the schema refuses it. */
  readonly say?: (value: Json) => string;
  /** Values that the capability takes there, right or not. */
  readonly takes?: (value: Json) => boolean;
}

/** One field with a wrong value. Behind a strict schema, the capability takes whatever the schema does. */
export function ofField({ at, draw, say, takes, ...kind }: FieldKind): Kind {
  return {
    ...kind,
    draw: (random) => {
      const [wrong, right] = draw(random);
      const isOpen = openCapabilities.has(kind.capability);
      return {
        wrong: { [at]: wrong },
        right: { [at]: right },
        say: (input) => say?.(get(input, at) ?? null) ?? '',
        takes: (input) => takes?.(get(input, at) ?? null) ?? !isOpen,
      };
    },
  };
}

interface KeyKind extends Omit<Kind, 'draw'> {
  readonly key: string;
  readonly misspelt: string;
  readonly draw: (random: Random) => Json;
}

/** A field under a misspelt name; it is optional, so anything without that name is accepted. */
export function ofKey({ key, misspelt, draw, ...kind }: KeyKind): Kind {
  return {
    ...kind,
    draw: (random) => {
      const value = draw(random);
      return {
        wrong: { [key]: undefined, [misspelt]: value },
        right: { [key]: value, [misspelt]: undefined },
        say: () => `field "${misspelt}" is not known`,
        takes: (input) => !Object.hasOwn(input, misspelt),
      };
    },
  };
}

export function pick<Item>(random: Random, items: readonly Item[]): Item {
  return items[random.below(items.length)] as Item;
}
/** A whole number from `low` to `high`. */
export function whole(random: Random, low: number, high: number): number {
  return low + random.below(high - low + 1);
}
export function odd(random: Random, low: number, high: number): number {
  return 2 * whole(random, Math.ceil((low - 1) / 2), Math.floor((high - 1) / 2)) + 1;
}

export function isNumber(value: Json): boolean {
  return typeof value === 'number';
}
export function isEven(value: Json): boolean {
  return typeof value === 'number' && value % 2 === 0;
}
export function isWhole(value: Json): boolean {
  return Number.isInteger(value);
}
export function isOf(known: readonly Json[]) {
  return (value: Json): boolean => known.includes(value);
}
