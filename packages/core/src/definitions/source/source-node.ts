/**
 * A JSON value with the position of each part in the text, in any source language. All offsets are UTF-16 units from
 * the start of the text; lines and columns follow from them.
 */
import { mostValues } from '../../contracts/limits.ts';
import type { Json } from '../../contracts/primitives.ts';
import { extendPointer, splitPointer } from '../../json/values.ts';

export interface SourceNode {
  readonly value: Json;
  readonly start: number;
  readonly end: number;
  readonly items?: readonly SourceNode[];
  readonly entries?: ReadonlyMap<string, SourceEntry>;
}

export interface SourceEntry {
  readonly keyStart: number;
  readonly node: SourceNode;
}

export const sourceCodes = [
  'json_syntax',
  'key_duplicate',
  'number_inexact',
  'too_deep',
  'too_many_values',
  'value_not_json',
  'yaml_alias',
  'yaml_key',
  'yaml_merge',
  'yaml_number',
  'yaml_several_documents',
  'yaml_syntax',
  'yaml_tab',
  'yaml_tag',
  'yaml_too_large',
  'yaml_unquoted_expression',
] as const;
export type SourceCode = (typeof sourceCodes)[number];

/** A problem of the text itself, before anything is known about the definition. */
export interface SourceProblem {
  readonly code: SourceCode;
  readonly pointer: string;
  readonly at: number;
  readonly message: string;
  readonly suggestion?: string;
}

export interface SourceReading {
  /** null when the text cannot be read to its end. */
  readonly root: SourceNode | null;
  readonly problems: readonly SourceProblem[];
  /** Values that are read, but perhaps not as their author means them. */
  readonly warnings: readonly SourceProblem[];
}

/** Limits of a definition's size, so that reading one cannot exhaust a process. */
export const sourceLimits = { depth: 100, values: mostValues, problems: 1_000 } as const;

interface SourceTarget {
  /** The deepest part that exists on the way to the pointer. */
  readonly node: SourceNode;
  readonly keyStart: number | null;
  readonly exact: boolean;
}

/** JSON Pointer to the deepest part whose text includes the position. */
export function pointerAt({ entries, items }: SourceNode, at: number, pointer = ''): string {
  for (const [key, { keyStart, node }] of entries ?? []) {
    if (keyStart <= at && at < node.end) return pointerAt(node, at, extendPointer(pointer, key));
  }
  const index = items?.findIndex(({ end }) => at < end) ?? -1;
  const item = items?.[index];
  return item === undefined ? pointer : pointerAt(item, at, extendPointer(pointer, index));
}

export function findSource(root: SourceNode, pointer: string): SourceTarget {
  let target: SourceTarget = { node: root, keyStart: null, exact: true };
  for (const segment of splitPointer(pointer)) {
    const entry = target.node.entries?.get(segment);
    const node = entry?.node ?? target.node.items?.[Number(segment)];
    if (node === undefined) return { ...target, exact: false };
    target = { node, keyStart: entry?.keyStart ?? null, exact: true };
  }
  return target;
}

/** Line and column are counted from 1; columns in UTF-16 units. */
interface Position {
  readonly line: number;
  readonly column: number;
}

export function createLineTable(text: string): (offset: number) => Position {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
  };
}

/**
 * The position in the text of a character of a string's value. Exact for plain and quoted strings and for literal
 * blocks; the start of the string for folded text.
 */
export function locateInString(text: string, { value, start, end }: SourceNode, offset: number): number {
  if (typeof value !== 'string' || offset === 0) return start;
  const written = text.slice(start, end);
  const verbatim = written.indexOf(value);
  if (verbatim >= 0) return start + verbatim + offset;
  return start + (written.startsWith('"') ? skipEscaped(written, offset) : findLine(written, value, offset));
}

const escapeLengths: Readonly<Record<string, number>> = { u: 6, x: 4, U: 10 };

/** Skips in a double-quoted string with escapes, each of which counts as one unit. */
function skipEscaped(written: string, offset: number): number {
  let at = 1;
  for (let unit = 0; unit < offset && at < written.length; unit++) {
    at += written[at] === '\\' ? (escapeLengths[written[at + 1] ?? ''] ?? 2) : 1;
  }
  return Math.min(at, written.length - 1);
}

/** A block scalar: its lines appear unchanged in the text, after an indentation. */
function findLine(written: string, value: string, offset: number): number {
  const lineStart = value.lastIndexOf('\n', offset - 1) + 1;
  const lineEnd = value.indexOf('\n', offset);
  const line = value.slice(lineStart, lineEnd < 0 ? undefined : lineEnd);
  const at = written.indexOf(line);
  return at < 0 ? 0 : at + offset - lineStart;
}

/** The language of a definition's text. */
type SourceFormat = 'json' | 'yaml';

/** Decides by media type; without one, or with a general one, by the first character: `{` opens JSON. */
export function detectFormat(text: string, contentType: string | null): SourceFormat {
  const mediaType = contentType?.split(';')[0]?.trim().toLowerCase() ?? '';
  if (mediaType.endsWith('json')) return 'json';
  if (mediaType.endsWith('yaml')) return 'yaml';
  return text.trimStart().startsWith('{') ? 'json' : 'yaml';
}
