/**
 * A JSON value together with where each part of it stands in the text, whatever the text's language.
 * All offsets are UTF-16 units from the start of the text.
 */
import { mostValues } from '../../contracts/bounds.ts';
import type { Json } from '../../contracts/primitives.ts';
import { extendPointer, splitPointer } from '../../core/json-pointer.ts';

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
  'too_deep',
  'too_many_values',
  'value_not_json',
  'yaml_alias',
  'yaml_key',
  'yaml_several_documents',
  'yaml_syntax',
  'yaml_tab',
  'yaml_tag',
  'yaml_too_large',
  'yaml_unquoted_expression',
] as const;
export type SourceCode = (typeof sourceCodes)[number];

/** Something wrong with the text itself, before anything is known about the definition. */
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
}

/** Bounds of what a definition may hold, so that reading one cannot exhaust a process. */
export const sourceLimits = { depth: 100, values: mostValues, problems: 1_000 } as const;

export interface SourceTarget {
  /** The deepest part that exists on the way to the pointer. */
  readonly node: SourceNode;
  readonly keyStart: number | null;
  readonly exact: boolean;
}

/** JSON Pointer to the deepest part that is written around a place of the text. */
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
