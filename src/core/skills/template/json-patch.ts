/**
 * JSON Patch (RFC 6902): all of a patch or none of it. Pointers that reach a prototype are refused, and what a patch
 * may copy is bounded, so that no short text builds a huge document.
 */
import type { Json, JsonObject } from '../../../contracts/primitives.ts';
import { isEqual } from '../../expression/equality.ts';
import { isList, isPlainObject } from '../../json-type.ts';
import { findPointerFault, insertAt, removeAt, replaceAt, valueAt } from './pointer.ts';

export type PatchOperation<Value = Json> =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: Value }
  | { readonly op: 'remove'; readonly path: string }
  | { readonly op: 'move' | 'copy'; readonly from: string; readonly path: string };

export const patchLimits = {
  operations: 200,
  /** Values and characters that `copy` may add. */
  copied: 1_000_000,
} as const;

export type PatchReading =
  | { readonly ok: true; readonly operations: readonly PatchOperation[] }
  | { readonly ok: false; readonly message: string };

/** Checks the form of a patch; unknown members are ignored, as the RFC says. */
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

/** @returns the operation, or what is wrong with it */
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

export type PatchResult =
  | { readonly ok: true; readonly value: Json }
  /** `index` of the operation that does not apply. */
  | { readonly ok: false; readonly index: number; readonly reason: string };

export interface CopyBudget {
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
