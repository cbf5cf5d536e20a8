/** What the contract says about the shape of a definition, in words for its author. */
import type { z } from 'zod';
import {
  Concurrency,
  EscalatePolicy,
  ForEach,
  PipelineDefinition,
  RetryPolicy,
  ReviewStep,
  StepDefinition,
} from '../contracts/pipeline.ts';
import type { Json } from '../contracts/primitives.ts';
import { extendPointer } from '../core/json-pointer.ts';
import { jsonTypeOf } from '../core/json-type.ts';
import { createNameSuggester } from '../core/nearest-name.ts';
import { findSource, type SourceNode } from './source/source-node.ts';

export const shapeCodes = ['key_missing', 'key_unknown', 'type_invalid', 'value_invalid'] as const;

export interface ShapeFinding {
  readonly code: (typeof shapeCodes)[number];
  readonly pointer: string;
  readonly message: string;
  readonly suggestion?: string | undefined;
}

type ShapeIssue = z.core.$ZodIssue;

/** @param text the source, for suggestions that repeat what was written */
export function readShapeIssue(issue: ShapeIssue, root: SourceNode, text: string): ShapeFinding[] {
  const pointer = extendPointer('', ...issue.path.map(String));
  if (issue.code === 'unrecognized_keys') return readUnknownKeys(issue, pointer);
  const { node, exact } = findSource(root, pointer);
  if (!exact)
    return [{ code: 'key_missing', pointer, message: `${JSON.stringify(issue.path.at(-1))} is required` }];
  if (issue.code === 'invalid_type') return [readWrongType(issue, pointer, node, text)];
  if (issue.code === 'invalid_value') return [readWrongValue(issue, pointer, node.value)];
  return [{ code: 'value_invalid', pointer, message: issue.message }];
}

function readUnknownKeys(
  issue: Extract<ShapeIssue, { code: 'unrecognized_keys' }>,
  pointer: string,
): ShapeFinding[] {
  const known = knownKeys(issue.path);
  const suggest = createNameSuggester(known);
  return issue.keys.map((key) => ({
    code: 'key_unknown',
    pointer: extendPointer(pointer, key),
    message: `unknown key ${JSON.stringify(key.slice(0, 64))}; allowed are ${known.join(', ')}`,
    suggestion: suggest(key),
  }));
}

const partShapes: ReadonlyMap<PropertyKey, object> = new Map<PropertyKey, object>([
  ['concurrency', Concurrency.shape],
  ['escalate', EscalatePolicy.shape],
  ['for_each', ForEach.shape],
  ['retry', RetryPolicy.shape],
  ['review', ReviewStep.shape],
]);

function knownKeys(path: readonly PropertyKey[]): string[] {
  const last = path.at(-1);
  if (last === undefined) return Object.keys(PipelineDefinition.shape);
  const part = partShapes.get(last);
  if (part !== undefined) return Object.keys(part);
  if (path[0] === 'defaults') return Object.keys(PipelineDefinition.shape.defaults.unwrap().shape);
  return Object.keys(StepDefinition.shape);
}

const typeNames: Readonly<Record<string, string>> = {
  record: 'an object',
  object: 'an object',
  array: 'a list',
  int: 'a whole number',
};

function readWrongType(
  issue: Extract<ShapeIssue, { code: 'invalid_type' }>,
  pointer: string,
  { value, start, end }: SourceNode,
  text: string,
): ShapeFinding {
  const expected = typeNames[issue.expected] ?? `a ${issue.expected}`;
  const seen = jsonTypeOf(value) ?? 'nothing';
  const isScalar = typeof value === 'number' || typeof value === 'boolean';
  const suggestion =
    issue.expected === 'string' && isScalar
      ? `quote it: ${JSON.stringify(text.slice(start, end).trim())}`
      : undefined;
  return {
    code: 'type_invalid',
    pointer,
    message: `expected ${expected}, found ${describe(seen, value)}`,
    suggestion,
  };
}

function describe(type: string, value: Json): string {
  return typeof value === 'number'
    ? `the number ${value}`
    : type === 'null'
      ? 'nothing (null)'
      : `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`;
}

function readWrongValue(
  issue: Extract<ShapeIssue, { code: 'invalid_value' }>,
  pointer: string,
  value: Json,
): ShapeFinding {
  const allowed = issue.values.map(String);
  return {
    code: 'value_invalid',
    pointer,
    message: `expected one of ${allowed.join(', ')}`,
    suggestion: typeof value === 'string' ? createNameSuggester(allowed)(value) : undefined,
  };
}
