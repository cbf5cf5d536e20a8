/**
 * Writes the difference between an input and its correction as a JSON Patch. A test on the old value guards every
 * literal that replaces or removes something, so that the template stops, instead of rewriting, when the next input
 * differs.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import type { Segment } from '../expression/ast.ts';
import { isEqual } from '../expression/compare.ts';
import { findPointerFault, type PatchOperation, patchLimits } from '../json/patch.ts';
import { extendPointer, isList, isPlainObject } from '../json/values.ts';
import { createNameSuggester } from '../nearest-name.ts';
import { isDerived, quoteValue } from './template.ts';

/** One value that the correction changed. */
export interface ValueChange {
  /** Its place, from the root of the input. */
  readonly segments: readonly Segment[];
  /** Undefined: there was no value. */
  readonly before: Json | undefined;
  readonly after: Json;
}

interface Writing {
  /** An expression for the new value; null: the value is written as a literal. */
  readonly express: (change: ValueChange) => string | null;
  /** Whether a misspelt key is written as a move. */
  readonly hasMoves: boolean;
}

/**
 * @returns the text of the template; null when there is no difference, or when the path to it contains a name that
 * pointers may not have
 */
export function writeTemplate(original: Json, corrected: Json): string | null {
  return writePatch(original, corrected, { express: () => null, hasMoves: false });
}

export function writePatch(original: Json, corrected: Json, writing: Writing): string | null {
  const position: PatchPosition = { pointer: '', segments: [], writing };
  const operations = writeChange(original, corrected, position);
  if (operations.length === 0) return null;
  if (operations.some(({ path }) => findPointerFault(path) !== null)) return null;
  const written =
    operations.length > patchLimits.operations ? replaceGuarded(original, corrected, position) : operations;
  return JSON.stringify(written);
}

interface PatchPosition {
  readonly pointer: string;
  readonly segments: readonly Segment[];
  readonly writing: Writing;
}

function below({ pointer, segments, writing }: PatchPosition, segment: string | number): PatchPosition {
  return { pointer: extendPointer(pointer, segment), segments: [...segments, segment], writing };
}

function writeChange(before: Json, after: Json, position: PatchPosition): PatchOperation[] {
  if (isEqual(before, after)) return [];
  const { pointer: path, segments, writing } = position;
  const value = writing.express({ segments, before, after });
  if (value !== null) return [{ op: 'replace', path, value }];
  if (isPlainObject(before) && isPlainObject(after)) return writeObject(before, after, position);
  const whole = replaceGuarded(before, after, position);
  if (!isList(before) || !isList(after)) return whole;
  const parts = writeList(before, after, position);
  return isWorthIt(parts, whole) ? parts : whole;
}

/** Parts are better than the whole list if they generalise or are shorter. */
function isWorthIt(parts: readonly PatchOperation[], whole: readonly PatchOperation[]): boolean {
  return (
    parts.some(
      (operation) => operation.op === 'move' || ('value' in operation && isDerived(operation.value)),
    ) || JSON.stringify(parts).length < JSON.stringify(whole).length
  );
}

function guard(value: Json, path: string): PatchOperation {
  return { op: 'test', path, value: quoteValue(value) };
}

function replaceGuarded(before: Json, after: Json, { pointer: path }: PatchPosition): PatchOperation[] {
  return [guard(before, path), { op: 'replace', path, value: quoteValue(after) }];
}

function removeGuarded(before: Json, { pointer: path }: PatchPosition): PatchOperation[] {
  return [guard(before, path), { op: 'remove', path }];
}

function add(after: Json, { pointer: path, segments, writing }: PatchPosition): PatchOperation {
  const value = writing.express({ segments, before: undefined, after }) ?? quoteValue(after);
  return { op: 'add', path, value };
}

function writeObject(before: JsonObject, after: JsonObject, position: PatchPosition): PatchOperation[] {
  const renamed = position.writing.hasMoves ? findRenamedKeys(before, after) : new Map<string, string>();
  const operations: PatchOperation[] = [...renamed].map(([key, from]) => ({
    op: 'move',
    from: extendPointer(position.pointer, from),
    path: extendPointer(position.pointer, key),
  }));
  const moved = new Set(renamed.values());
  for (const [key, value] of Object.entries(before)) {
    if (moved.has(key)) continue;
    const at = below(position, key);
    const kept = Object.hasOwn(after, key);
    operations.push(...(kept ? writeChange(value, after[key] ?? null, at) : removeGuarded(value, at)));
  }
  for (const [key, value] of Object.entries(after)) {
    if (!Object.hasOwn(before, key) && !renamed.has(key)) operations.push(add(value, below(position, key)));
  }
  return operations;
}

/** New key to old key, for a removed key and an added one with nearly its name and the same value. */
function findRenamedKeys(before: JsonObject, after: JsonObject): Map<string, string> {
  const gone = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
  const come = Object.keys(after).filter((key) => !Object.hasOwn(before, key));
  const [from, ...moreGone] = gone;
  const [key, ...moreCome] = come;
  if (from === undefined || key === undefined || moreGone.length + moreCome.length > 0) return new Map();
  const isNear = createNameSuggester([key])(from) !== undefined;
  return new Map(isNear && isEqual(before[from] ?? null, after[key] ?? null) ? [[key, from]] : []);
}

/** Items are paired from both ends; unpaired ones in the middle are removed or added. */
function writeList(
  before: readonly Json[],
  after: readonly Json[],
  position: PatchPosition,
): PatchOperation[] {
  const shorter = Math.min(before.length, after.length);
  const change = after.length - before.length;
  let end = 0;
  while (change !== 0 && end < shorter && isEqual(before.at(-1 - end) ?? null, after.at(-1 - end) ?? null))
    end++;
  const paired = shorter - end;
  const operations = change > 0 ? [guard(before, position.pointer)] : [];
  for (let index = 0; index < paired; index++) {
    operations.push(...writeChange(before[index] ?? null, after[index] ?? null, below(position, index)));
  }
  for (let index = paired - change - 1; index >= paired; index--) {
    operations.push(...removeGuarded(before[index] ?? null, below(position, index)));
  }
  for (let index = paired; index < paired + change; index++) {
    operations.push(add(after[index] ?? null, below(position, index)));
  }
  return operations;
}
