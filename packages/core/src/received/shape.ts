/**
 * Whether a value from outside has a shape. Workflows check messages from Temporal by it, where a schema library would
 * be loaded into every sandbox.
 */
import { isPlainObject } from '../json/values.ts';

/** @returns the first fault, with its place and the present value; null: the value has the shape */
export type Shape = (value: unknown, at: string) => string | null;

/** A shape for each key, so that none is forgotten. */
export type Shapes<T> = { readonly [Key in keyof T]-?: Shape };

export function hasShape(shape: Shape, value: unknown): boolean {
  return shape(value, '') === null;
}

const longest = 40;

function describeValue(value: unknown): string {
  if (value === undefined) return 'absent';
  if (typeof value === 'string') {
    return JSON.stringify(value.length > longest ? `${value.slice(0, longest)}…` : value);
  }
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}

/** @param allowed `a text` */
export function allow(allowed: string, isAllowed: (value: unknown) => boolean): Shape {
  return (value, at) => (isAllowed(value) ? null : `${at} is ${describeValue(value)}, not ${allowed}`);
}

export const text = allow('a text', (value) => typeof value === 'string');
export const flag = allow('true or false', (value) => typeof value === 'boolean');
export const number = allow('a number', Number.isFinite);
export const count = allow(
  'a whole number from 0',
  (value) => Number.isSafeInteger(value) && Number(value) >= 0,
);
export const anything: Shape = () => null;

export function indexBelow(length: number): Shape {
  return allow(`an index below ${length}`, (value) => hasShape(count, value) && Number(value) < length);
}

export function nullable(shape: Shape): Shape {
  return (value, at) => (value === null ? null : shape(value, at));
}

export function optional(shape: Shape): Shape {
  return (value, at) => (value === undefined ? null : shape(value, at));
}

export function listOf(shape: Shape): Shape {
  const list = allow('a list', Array.isArray);
  return (value, at) =>
    list(value, at) ??
    firstFault((value as unknown[]).entries(), ([key, item]) => shape(item, `${at}[${key}]`));
}

const anObject = allow('an object', isPlainObject);

/** An object with these fields; others are allowed. */
export function fields<T extends object>(shapes: Shapes<T>): Shape {
  const entries = Object.entries<Shape>(shapes);
  return (value, at) =>
    anObject(value, at) ??
    firstFault(entries, ([key, shape]) => shape((value as Record<string, unknown>)[key], `${at}.${key}`));
}

/** An object whose shape is named by one of its fields. */
export function choiceOf(key: string, shapes: Readonly<Record<string, Shape>>): Shape {
  const names = Object.keys(shapes);
  const name = allow(`one of ${names.join(', ')}`, (value) => names.includes(value as string));
  return (value, at) => {
    const named = anObject(value, at) === null ? (value as Record<string, unknown>)[key] : undefined;
    return anObject(value, at) ?? name(named, `${at}.${key}`) ?? shapes[named as string]?.(value, at) ?? null;
  };
}

/** An object by names. */
export function recordOf(shape: Shape): Shape {
  return (value, at) =>
    anObject(value, at) ??
    firstFault(Object.entries(value as object), ([key, item]) =>
      shape(item, `${at}[${JSON.stringify(key)}]`),
    );
}

function firstFault<Item>(items: Iterable<Item>, faultOf: (item: Item) => string | null): string | null {
  for (const item of items) {
    const fault = faultOf(item);
    if (fault !== null) return fault;
  }
  return null;
}
