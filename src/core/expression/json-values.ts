/**
 * Copies of JSON values and their JSON text, in the way of every result: own properties only, bounded in depth, and
 * charged to the evaluation before they are built.
 */
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { isPlainObject, type Scalar } from '../json-type.ts';
import { describeValue, type Evaluation, evaluationError, spend, spendItems } from './evaluation.ts';
import { expressionLimits } from './limits.ts';

/** A value that shares nothing that could change with the one it was made of. */
export function copyValue(value: unknown, evaluation: Evaluation, depth = 0): Json {
  if (Array.isArray(value)) {
    enter(depth, value.length, evaluation);
    return value.map((item) => copyValue(item, evaluation, depth + 1));
  }
  if (!isPlainObject(value)) {
    if (typeof value === 'string') spend(evaluation, value.length);
    return toScalar(value, evaluation);
  }
  const keys = keysOf(value);
  enter(depth, keys.length, evaluation);
  for (const key of keys) spend(evaluation, key.length);
  return Object.fromEntries(keys.map((key) => [key, copyValue(value[key], evaluation, depth + 1)]));
}

function toScalar(value: unknown, evaluation: Evaluation): Scalar {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw evaluationError(evaluation, `the value holds ${describeValue(value)}`);
}

/** What `JSON.stringify` writes, without looking for a `toJSON`. */
export function formatJson(value: Json, evaluation: Evaluation): string {
  const parts: string[] = [];
  writeValue(value, { evaluation, depth: 0, parts });
  return parts.join('');
}

interface JsonWriting {
  readonly evaluation: Evaluation;
  readonly depth: number;
  readonly parts: string[];
}

function writeValue(value: Json, writing: JsonWriting): void {
  const below = { ...writing, depth: writing.depth + 1 };
  if (Array.isArray(value)) {
    enter(writing.depth, value.length, writing.evaluation);
    write('[', writing);
    for (const [index, item] of value.entries()) {
      if (index > 0) write(',', writing);
      writeValue(item, below);
    }
    write(']', writing);
  } else if (isPlainObject(value)) writeObject(value, writing, below);
  else write(JSON.stringify(toScalar(value, writing.evaluation)), writing);
}

function writeObject(value: JsonObject, writing: JsonWriting, below: JsonWriting): void {
  const keys = keysOf(value);
  enter(writing.depth, keys.length, writing.evaluation);
  write('{', writing);
  for (const [index, key] of keys.entries()) {
    write(`${index > 0 ? ',' : ''}${JSON.stringify(key)}:`, writing);
    writeValue(value[key] ?? null, below);
  }
  write('}', writing);
}

function write(text: string, { evaluation, parts }: JsonWriting): void {
  spend(evaluation, text.length);
  parts.push(text);
}

/** As in JSON, a key without a value is none. */
function keysOf(value: JsonObject): string[] {
  return Object.keys(value).filter((key) => value[key] !== undefined);
}

function enter(depth: number, items: number, evaluation: Evaluation): void {
  if (depth >= expressionLimits.valueNesting) {
    throw evaluationError(evaluation, `the value nests deeper than ${expressionLimits.valueNesting}`);
  }
  spendItems(evaluation, items);
}
