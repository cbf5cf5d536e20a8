/**
 * JSON Patch (RFC 6902), and reading and changing one place of a JSON document by its JSON Pointer (RFC 6901), without
 * changing the document itself. Names that reach a prototype never resolve, in any pointer; an index of a list has no
 * leading zero.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { isEqual } from '../expression/compare.ts';
import { isForbiddenName, isList, isPlainObject, splitPointer } from './values.ts';

const form = /^(?:\/(?:[^~/]|~[01])*)*$/;

/** @returns why the text is not a pointer, or null */
export function findPointerFault(pointer: string): string | null {
  if (!form.test(pointer)) return 'is no JSON Pointer: "" or /key/0, with ~0 for ~ and ~1 for /';
  const name = splitPointer(pointer).find(isForbiddenName);
  return name === undefined ? null : `holds the name ${name}, which is not allowed`;
}

const itemIndex = /^(?:0|[1-9][0-9]{0,14})$/;

function childOf(value: Json, segment: string): Json | undefined {
  if (isList(value)) return itemIndex.test(segment) ? value[Number(segment)] : undefined;
  return isPlainObject(value) && Object.hasOwn(value, segment) && !isForbiddenName(segment)
    ? value[segment]
    : undefined;
}

/** Undefined when the pointer does not resolve. */
export function valueAt(document: Json, pointer: string): Json | undefined {
  return splitPointer(pointer).reduce<Json | undefined>(
    (value, segment) => (value === undefined ? undefined : childOf(value, segment)),
    document,
  );
}

/** Changes a container at one of its keys; undefined when the key does not exist. */
type Change = (container: Json, segment: string) => Json | undefined;

function changeAt(document: Json, segments: readonly string[], change: Change): Json | undefined {
  const [segment = '', ...rest] = segments;
  if (rest.length === 0) return change(document, segment);
  const child = childOf(document, segment);
  const changed = child === undefined ? undefined : changeAt(child, rest, change);
  return changed === undefined ? undefined : replaceChild(document, segment, changed);
}

function replaceChild(container: Json, segment: string, value: Json): Json {
  return isList(container)
    ? container.with(Number(segment), value)
    : { ...(container as object), [segment]: value };
}

function insertChild(value: Json): Change {
  return (container, segment) => {
    if (isPlainObject(container)) {
      return isForbiddenName(segment) ? undefined : { ...container, [segment]: value };
    }
    if (!isList(container)) return undefined;
    if (segment === '-') return [...container, value];
    const index = itemIndex.test(segment) ? Number(segment) : Number.NaN;
    return index <= container.length ? container.toSpliced(index, 0, value) : undefined;
  };
}

const dropChild: Change = (container, segment) => {
  if (childOf(container, segment) === undefined) return undefined;
  if (isList(container)) return container.toSpliced(Number(segment), 1);
  const { [segment]: _, ...rest } = container as Readonly<Record<string, Json>>;
  return rest;
};

/** Like `add` of RFC 6902; undefined when the parent does not exist or cannot have such a child. */
function insertAt(document: Json, pointer: string, value: Json): Json | undefined {
  return pointer === '' ? value : changeAt(document, splitPointer(pointer), insertChild(value));
}

/** Undefined when the pointer does not resolve; the whole document cannot be removed. */
function removeAt(document: Json, pointer: string): Json | undefined {
  return pointer === '' ? undefined : changeAt(document, splitPointer(pointer), dropChild);
}

/** Undefined when the pointer does not resolve. */
function replaceAt(document: Json, pointer: string, value: Json): Json | undefined {
  if (valueAt(document, pointer) === undefined) return undefined;
  if (pointer === '') return value;
  return changeAt(document, splitPointer(pointer), (container, segment) =>
    replaceChild(container, segment, value),
  );
}

// A patch applies as a whole or not at all. The amount that a patch may copy is bounded, so that a short text cannot
// build a huge document.

export type PatchOperation<Value = Json> =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: Value }
  | { readonly op: 'remove'; readonly path: string }
  | { readonly op: 'move' | 'copy'; readonly from: string; readonly path: string };

export const patchLimits = {
  operations: 200,
  /** Values and characters that `copy` may add. */
  copied: 1_000_000,
} as const;

type PatchReading =
  | { readonly ok: true; readonly operations: readonly PatchOperation[] }
  | { readonly ok: false; readonly message: string };

/** Checks the form of a patch; ignores unknown members, as the RFC requires. */
export function readPatch(value: Json): PatchReading {
  if (!isList(value)) return { ok: false, message: 'a JSON Patch is a list of operations' };
  if (value.length > patchLimits.operations) {
    const message = `a patch of ${value.length} operations, at most ${patchLimits.operations} are allowed`;
    return { ok: false, message };
  }
  const operations: PatchOperation[] = [];
  for (const [index, item] of value.entries()) {
    const operation = isPlainObject(item) ? readOperation(item) : 'is no object';
    if (typeof operation === 'string') return { ok: false, message: `operation ${index} ${operation}` };
    operations.push(operation);
  }
  return { ok: true, operations };
}

/** @returns the operation, or its fault */
function readOperation(item: JsonObject): PatchOperation | string {
  const { op, path, from, value } = item;
  if (typeof path !== 'string') return 'has no path';
  const fault = findPointerFault(path);
  if (fault !== null) return `has a path that ${fault}`;
  switch (op) {
    case 'add':
    case 'replace':
    case 'test':
      return value === undefined ? `is ${op} without a value` : { op, path, value };
    case 'remove':
      return { op, path };
    case 'move':
    case 'copy': {
      if (typeof from !== 'string') return `is ${op} without from`;
      const fromFault = findPointerFault(from);
      return fromFault === null ? { op, from, path } : `has a from that ${fromFault}`;
    }
    default:
      return 'has none of the names test, replace, add, remove, copy, move as op';
  }
}

type PatchResult =
  | { readonly ok: true; readonly value: Json }
  /** `index` of the operation that does not apply. */
  | { readonly ok: false; readonly index: number; readonly reason: string };

interface CopyBudget {
  left: number;
}

export function createCopyBudget(): CopyBudget {
  return { left: patchLimits.copied };
}

export function applyPatch(document: Json, operations: readonly PatchOperation[]): PatchResult {
  const budget = createCopyBudget();
  let value = document;
  for (const [index, operation] of operations.entries()) {
    const step = applyOperation(value, operation, budget);
    if (!step.ok) return { ok: false, index, reason: step.reason };
    value = step.value;
  }
  return { ok: true, value };
}

type StepResult =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly reason: string };

export function applyOperation(document: Json, operation: PatchOperation, budget: CopyBudget): StepResult {
  const { op, path } = operation;
  switch (op) {
    case 'test':
      return runTest(document, path, operation.value);
    case 'add':
      return changed(insertAt(document, path, operation.value), op, path);
    case 'replace':
      return changed(replaceAt(document, path, operation.value), op, path);
    case 'remove':
      return changed(removeAt(document, path), op, path);
    case 'move':
      return move(document, operation.from, path);
    case 'copy':
      return copy(document, operation, budget);
  }
}

function failed(reason: string): StepResult {
  return { ok: false, reason };
}

function changed(value: Json | undefined, op: string, path: string): StepResult {
  return value === undefined ? failed(`${op} finds no place ${showPointer(path)}`) : { ok: true, value };
}

export function showPointer(pointer: string): string {
  return JSON.stringify(pointer.slice(0, 200));
}

function runTest(document: Json, path: string, expected: Json): StepResult {
  const seen = valueAt(document, path);
  if (seen === undefined) return failed(`test finds nothing at ${showPointer(path)}`);
  if (!isEqual(seen, expected)) return failed(`test finds another value at ${showPointer(path)}`);
  return { ok: true, value: document };
}

function move(document: Json, from: string, path: string): StepResult {
  const value = valueAt(document, from);
  if (value === undefined) return failed(`move finds nothing at ${showPointer(from)}`);
  if (from === path) return { ok: true, value: document };
  if (path.startsWith(`${from}/`)) return failed(`move of ${showPointer(from)} into itself`);
  const without = removeAt(document, from);
  return changed(without === undefined ? undefined : insertAt(without, path, value), 'move', path);
}

function copy(
  document: Json,
  { from, path }: { readonly from: string; readonly path: string },
  budget: CopyBudget,
): StepResult {
  const value = valueAt(document, from);
  if (value === undefined) return failed(`copy finds nothing at ${showPointer(from)}`);
  charge(value, budget);
  if (budget.left < 0)
    return failed(`the patch copies more than ${patchLimits.copied} values and characters`);
  return changed(insertAt(document, path, value), 'copy', path);
}

/** Stops counting as soon as the budget is spent. */
function charge(value: Json, budget: CopyBudget): void {
  budget.left -= typeof value === 'string' ? 1 + value.length : 1;
  if (typeof value !== 'object' || value === null) return;
  for (const [key, child] of Object.entries(value)) {
    if (budget.left < 0) return;
    budget.left -= key.length;
    charge(child, budget);
  }
}
