/**
 * The state of one evaluation: the scope, the position, and the remaining budget for building. JSON values are copied
 * and JSON text is written by the rules for all results: own properties only, bounded in depth, and charged to the
 * evaluation before they are built.
 */
import { ExactNumber, writeExactJson } from '../contracts/exact-json.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { isPlainObject, jsonTypeOf, type Scalar } from '../json/values.ts';
import { type AnyRootName, type ComparisonOperator, ExpressionError, expressionLimits } from './language.ts';
import { charges, type Meter } from './meter.ts';

/** Outputs of the steps so far, by step id; a step that has not run, or was skipped, is absent. */
export interface StepScope {
  readonly output?: Json;
  readonly status?: string;
  readonly error?: Json;
  readonly cost_usd?: number;
}

export interface ExpressionScope {
  readonly job: JsonObject;
  readonly steps: Readonly<Record<string, StepScope>>;
  readonly run: {
    readonly id: string;
    readonly job_id: string;
    readonly attempt: number;
    readonly pipeline: string;
    readonly version: string;
    /** RFC 3339; absent: no schedule started a run of its job. */
    readonly scheduled_at?: string;
    /** Of that moment in the zone of the schedule, YYYY-MM-DD. */
    readonly scheduled_date?: string;
    /** Of the time for which it works: from the start before to this one. */
    readonly period_start?: string;
    readonly period_end?: string;
  };
  /** Inside `for_each` only. */
  readonly item?: Json;
  readonly index?: number;
  /** The answer of the item, where it is judged. */
  readonly output?: Json;
  /** Inside `repeat` only. */
  readonly round?: RoundScope;
}

/** A round of a step with `repeat`. */
export interface RoundScope {
  /** From 0. */
  readonly index: number;
  /** The output of the round before; absent in the first one. */
  readonly previous?: Json;
  /** Its own output; absent before it has ended. */
  readonly output?: Json;
}

/** The scope of a skill's template. */
export interface SkillScope {
  /** The input that failed. */
  readonly input: Json;
  /** The named groups of the error pattern. */
  readonly match: Readonly<Record<string, string>>;
}

/** The scope of a wrapped capability's file. */
export interface WrapScope {
  readonly input: Json;
  readonly files: JsonObject;
  readonly call: JsonObject;
  /** That of the file. */
  readonly folder: string;
  /** The last answer of the other side; absent before it. */
  readonly answer?: Json;
  /** The answer to the submission of a polled job. */
  readonly submitted?: Json;
}

/** The scope of the templates of a hook. */
export interface HookScope {
  readonly body: Json;
  /** By name in lower case. */
  readonly headers: JsonObject;
}

export interface Evaluation {
  readonly scope: Readonly<Partial<Record<AnyRootName, unknown>>>;
  readonly pointer: string;
  /** Shared by all expressions of a template, and by all evaluations of a request. */
  readonly meter: Meter;
}

interface Explanation {
  readonly message: string;
  readonly suggestion?: string | undefined;
}

/** A value, or the reason for having none. `??` may cover the reason, so its message is built only when needed. */
export type Outcome =
  | { readonly found: true; readonly value: Json }
  | { readonly found: false; readonly explain: () => Explanation };

export function found(value: Json): Outcome {
  return { found: true, value };
}

export function missing(explain: () => Explanation): Outcome {
  return { found: false, explain };
}

export function evaluationError(
  evaluation: Evaluation,
  message: string,
  suggestion?: string | undefined,
): ExpressionError {
  evaluation.meter.left -= charges.error;
  return new ExpressionError({ pointer: evaluation.pointer, message, suggestion });
}

/** Charges units of work, where their size is known before it is done. @throws ExpressionError above the limit */
export function spend(evaluation: Evaluation, units: number): void {
  const { meter, pointer } = evaluation;
  meter.left -= units;
  if (meter.left >= 0) return;
  throw new ExpressionError({
    pointer,
    message: `the expressions take more than ${meter.most} units of work`,
    isTooLarge: true,
  });
}

/** Charges characters that are read or compared. */
export function spendRead(evaluation: Evaluation, characters: number): void {
  spend(evaluation, Math.ceil(characters / charges.charactersRead));
}

export function spendBuilt(evaluation: Evaluation, characters: number): void {
  spend(evaluation, Math.ceil(characters / charges.charactersBuilt));
}

/** Charges values that are looked at. */
export function spendValues(evaluation: Evaluation, count: number): void {
  spend(evaluation, count * charges.value);
}

const longestKeyList = 12;

/** Here, for the description, and for a suggestion. */
const keyReads = 3;

/** `describeValue`, charged: to list the keys of an object, all are read. */
export function describeIn(evaluation: Evaluation, value: unknown): string {
  if (value instanceof ExactNumber) spendRead(evaluation, value.written.length);
  else if (isPlainObject(value)) spendValues(evaluation, keyReads * Object.keys(value).length);
  return describeValue(value);
}

/** `an object with the keys a, b`, `a list of 3`, `a string`: names types and keys, never values. */
export function describeValue(value: unknown): string {
  if (value instanceof ExactNumber) return describeExact(value);
  const type = jsonTypeOf(value);
  if (type === null) return 'a value that JSON cannot hold';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (isPlainObject(value)) return describeKeys(value);
  return type === 'null' ? 'null' : `a ${type}`;
}

/** Nothing calculates with it: a double would change it. */
function describeExact({ written }: ExactNumber): string {
  const { length } = written.replace(/[eE].*|[^0-9]/g, '');
  return `a number of ${length} digits, more than a calculation keeps; pass it on as it is, or as text by | string`;
}

function describeKeys(value: JsonObject): string {
  const keys = Object.keys(value);
  if (keys.length === 0) return 'an object without keys';
  const shown = keys.slice(0, longestKeyList).map((key) => (key.length > 64 ? `${key.slice(0, 64)}…` : key));
  const more = keys.length > longestKeyList ? ` and ${keys.length - longestKeyList} more` : '';
  return `an object with the keys ${shown.join(', ')}${more}`;
}

/** The text of a string, number or boolean; null for anything else. */
export function scalarText(value: unknown): string | null {
  if (value instanceof ExactNumber) return value.written;
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? JSON.stringify(value) : null;
}

/** A copy that shares no mutable state with its source. */
export function copyValue(value: unknown, evaluation: Evaluation, depth = 0): Json {
  if (typeof value === 'string') {
    spendRead(evaluation, value.length);
    return value;
  }
  if (Array.isArray(value)) {
    enter(depth, evaluation);
    spend(evaluation, value.length * charges.copy);
    return value.map((item) => copyValue(item, evaluation, depth + 1));
  }
  if (!isPlainObject(value)) return toScalar(value, evaluation);
  const keys = Object.keys(value);
  enter(depth, evaluation);
  spendValues(evaluation, keys.length);
  const copy: Record<string, Json> = {};
  for (const key of keys) {
    const member = value[key];
    if (member === undefined) continue;
    spendRead(evaluation, key.length);
    setMember(copy, key, copyValue(member, evaluation, depth + 1));
  }
  return copy;
}

/** Makes an own key of any name. */
export function setMember(object: Record<string, Json>, key: string, value: Json): void {
  if (key !== '__proto__') object[key] = value;
  else Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}

export function toScalar(value: unknown, evaluation: Evaluation): Scalar {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (value instanceof ExactNumber) {
    spendRead(evaluation, value.written.length);
    return value as unknown as Scalar;
  }
  throw evaluationError(evaluation, `the value holds ${describeValue(value)}`);
}

/** Writes what `JSON.stringify` writes, without calling `toJSON`. */
export function formatJson(value: Json, evaluation: Evaluation): string {
  const parts: string[] = [];
  writeValue(value, { evaluation, parts }, 0);
  return parts.join('');
}

interface JsonWriting {
  readonly evaluation: Evaluation;
  readonly parts: string[];
}

function writeValue(value: Json, writing: JsonWriting, depth: number): void {
  const { evaluation, parts } = writing;
  spend(evaluation, charges.textValue);
  if (Array.isArray(value)) {
    enter(depth, evaluation);
    parts.push('[');
    for (const [index, item] of value.entries()) {
      if (index > 0) parts.push(',');
      writeValue(item, writing, depth + 1);
    }
    parts.push(']');
  } else if (isPlainObject(value)) writeObject(value, writing, depth);
  else {
    if (typeof value === 'string') chargeText(evaluation, value.length);
    write(writeExactJson(toScalar(value, evaluation)), writing);
  }
}

function writeObject(value: JsonObject, writing: JsonWriting, depth: number): void {
  const { evaluation, parts } = writing;
  const keys = keysOf(value);
  enter(depth, evaluation);
  spendValues(evaluation, keys.length);
  parts.push('{');
  for (const [index, key] of keys.entries()) {
    chargeText(evaluation, key.length);
    write(`${index > 0 ? ',' : ''}${JSON.stringify(key)}:`, writing);
    writeValue(value[key] ?? null, writing, depth + 1);
  }
  parts.push('}');
}

/** @param length of what is written: escapes make it up to six times as long */
function chargeText(evaluation: Evaluation, length: number): void {
  spend(evaluation, Math.ceil(length / charges.charactersEscaped));
}

function write(text: string, { evaluation, parts }: JsonWriting): void {
  spendBuilt(evaluation, text.length);
  parts.push(text);
}

/** Omits keys without a value, as JSON does. */
function keysOf(value: JsonObject): string[] {
  return Object.keys(value).filter((key) => value[key] !== undefined);
}

function enter(depth: number, evaluation: Evaluation): void {
  if (depth >= expressionLimits.valueNesting) {
    throw evaluationError(evaluation, `the value nests deeper than ${expressionLimits.valueNesting}`);
  }
  spendValues(evaluation, 1);
}

/** The value that a filter gets, with its arguments. */
export interface FilterInput {
  readonly value: Json;
  readonly argument: string | null;
  /** Arguments that are expressions, evaluated. */
  readonly values: readonly Json[];
  readonly operator?: ComparisonOperator | undefined;
  readonly evaluation: Evaluation;
}

export interface ExpressionFilter {
  /**
   * `string`: a text in quotes. `field`: a name in quotes. `value`, `values`, `optional`: one, two, or perhaps one
   * expression. `condition`: a field, an operator and an expression.
   */
  readonly argument: 'none' | 'string' | 'field' | 'value' | 'values' | 'optional' | 'condition';
  /** One line for the documentation. */
  readonly summary: string;
  readonly apply: (input: FilterInput) => Outcome;
}

export function refuseValue({ value, evaluation }: FilterInput, rule: string, suggestion?: string) {
  return evaluationError(evaluation, `${rule}, not ${describeIn(evaluation, value)}`, suggestion);
}
