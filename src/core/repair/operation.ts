/** The JSON Patch operations (RFC 6902) that a repair is made of, and what they do to a value. */
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { isList, isPlainObject, splitPointer } from '../json.ts';

export type JsonPatchOperation =
  | { readonly op: 'test' | 'add' | 'replace'; readonly path: string; readonly value: Json }
  | { readonly op: 'remove'; readonly path: string }
  | { readonly op: 'move'; readonly from: string; readonly path: string };

/** What a pointer names; undefined when nothing. */
export function valueAt(root: Json, pointer: string): Json | undefined {
  return splitPointer(pointer).reduce<Json | undefined>(
    (value, segment) => (value === undefined ? undefined : memberOf(value, segment)),
    root,
  );
}

function memberOf(value: Json, segment: string): Json | undefined {
  if (value === null || typeof value !== 'object' || !Object.hasOwn(value, segment)) return undefined;
  return isList(value) ? value[Number(segment)] : (value as JsonObject)[segment];
}

/**
 * Shares all it does not change. Keys come and go in objects only, and `test` is taken as passed: a repair made
 * the guards from this very value.
 * @returns undefined when an operation finds nothing to work on
 */
export function applyRepair(root: Json, operations: readonly JsonPatchOperation[]): Json | undefined {
  return operations.reduce<Json | undefined>(
    (value, operation) => (value === undefined ? undefined : apply(value, operation)),
    root,
  );
}

function apply(root: Json, operation: JsonPatchOperation): Json | undefined {
  switch (operation.op) {
    case 'test':
      return root;
    case 'add':
    case 'replace':
      return write(root, splitPointer(operation.path), operation.value);
    case 'remove':
      return write(root, splitPointer(operation.path), undefined);
    case 'move': {
      const value = valueAt(root, operation.from);
      const rest = write(root, splitPointer(operation.from), undefined);
      if (value === undefined || rest === undefined) return undefined;
      return write(rest, splitPointer(operation.path), value);
    }
  }
}

/** @param value undefined: remove */
function write(parent: Json, segments: readonly string[], value: Json | undefined): Json | undefined {
  const [segment, ...rest] = segments;
  if (segment === undefined) return value;
  const child = memberOf(parent, segment);
  if (child === undefined && (rest.length > 0 || value === undefined)) return undefined;
  const next = child === undefined ? value : write(child, rest, value);
  if (next === undefined && (rest.length > 0 || isList(parent))) return undefined;
  return setMember(parent, segment, next);
}

function setMember(parent: Json, segment: string, value: Json | undefined): Json | undefined {
  if (isList(parent)) {
    const index = Number(segment);
    return value === undefined || index >= parent.length ? undefined : parent.with(index, value);
  }
  if (!isPlainObject(parent)) return undefined;
  if (value !== undefined) return { ...parent, [segment]: value };
  const { [segment]: _, ...others } = parent;
  return others;
}
