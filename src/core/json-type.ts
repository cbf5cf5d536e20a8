import type { Json, JsonObject } from '../contracts/primitives.ts';

export type JsonType = 'null' | 'boolean' | 'number' | 'string' | 'list' | 'object';

/** A JSON value that holds no other. */
export type Scalar = null | boolean | number | string;

export function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

/**
 * An object whose prototype is null or a root prototype (of any realm: a workflow runs in its own).
 * Instances of classes, dates, maps and functions are not.
 */
export function isPlainObject(value: unknown): value is JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** The JSON type of a value; null when the value is none that JSON can hold. */
export function jsonTypeOf(value: unknown): JsonType | null {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'list';
  if (isPlainObject(value)) return 'object';
  if (typeof value === 'number') return Number.isFinite(value) ? 'number' : null;
  return typeof value === 'string' ? 'string' : typeof value === 'boolean' ? 'boolean' : null;
}
