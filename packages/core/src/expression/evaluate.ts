/**
 * Evaluates compiled templates: total, without side effects, reading nothing but the scope. Results share no mutable
 * state with the scope or the template, and are never scanned for expressions again. A path follows own properties of
 * plain objects and lists only. A key, item or child of null that does not exist is missing. A segment of the wrong
 * form for its value (`[0]` on an object, `.x` on a list or a string) is an error that `??` does not cover.
 */
import type { Json } from '../contracts/primitives.ts';
import { isPlainObject, jsonTypeOf } from '../json/values.ts';
import { createNameSuggester } from '../nearest-name.ts';
import { type Expression, formatPath, type Literal, type Path, partsOf, type Segment } from './ast.ts';
import { calculate, compareValues } from './compare.ts';
import {
  copyValue,
  describeIn,
  describeValue,
  type Evaluation,
  type ExpressionScope,
  evaluationError,
  found,
  type HookScope,
  missing,
  type Outcome,
  type SkillScope,
  scalarText,
  setMember,
  spend,
  spendBuilt,
  spendRead,
  spendValues,
  type WrapScope,
} from './evaluation.ts';
import { knownFilters } from './filters.ts';
import { secretReference } from './language.ts';
import { charges, Meter, workLimits } from './meter.ts';
import type { CompiledTemplate, TemplateNode } from './template.ts';

/**
 * @param meter of the request; default: that of one value of a run
 * @throws ExpressionError when a path is missing or a value has the wrong type for its place
 */
export function evaluateTemplate(
  template: CompiledTemplate,
  scope: ExpressionScope | SkillScope | WrapScope | HookScope,
  meter: Meter = new Meter(workLimits.run),
): Json {
  return evaluateNode(template.root, scope, meter);
}

function evaluateNode(node: TemplateNode, scope: Evaluation['scope'], meter: Meter): Json {
  meter.left -= charges.part;
  switch (node.kind) {
    case 'literal':
      return copyValue(node.value, { scope, pointer: node.pointer, meter });
    case 'list':
      return node.items.map((item) => evaluateNode(item, scope, meter));
    case 'object':
      return evaluateMembers(node.entries, scope, meter);
    case 'expression':
      return evaluateWhole(node.expression, { scope, pointer: node.pointer, meter });
    case 'text':
      return evaluateText(node.parts, { scope, pointer: node.pointer, meter });
  }
}

type TemplateMembers = Extract<TemplateNode, { kind: 'object' }>['entries'];

function evaluateMembers(entries: TemplateMembers, scope: Evaluation['scope'], meter: Meter): Json {
  const object: Record<string, Json> = {};
  for (const [key, value] of entries) {
    meter.left -= charges.value;
    setMember(object, key, evaluateNode(value, scope, meter));
  }
  return object;
}

/** Evaluates the parts of one string, each to its text. @throws ExpressionError */
export function evaluateParts(
  parts: readonly (string | Expression)[],
  evaluation: Evaluation,
): readonly string[] {
  return textsOf(parts, evaluation);
}

function evaluateWhole(expression: Expression, evaluation: Evaluation): Json {
  return copyValue(evaluateToValue(expression, evaluation), evaluation);
}

function evaluateText(parts: readonly (string | Expression)[], evaluation: Evaluation): string {
  return textsOf(parts, evaluation).join('');
}

function textsOf(parts: readonly (string | Expression)[], evaluation: Evaluation): readonly string[] {
  const isBlankAround = parts.every((part) => typeof part !== 'string' || part.trim() === '');
  return parts.map((part) => {
    const text = typeof part === 'string' ? part : embeddedText(part, evaluation, isBlankAround);
    spendBuilt(evaluation, text.length);
    return text;
  });
}

function embeddedText(expression: Expression, evaluation: Evaluation, isBlankAround: boolean): string {
  const value = evaluateToValue(expression, evaluation);
  const text = scalarText(value);
  if (text !== null) return text;
  const hint = value === null ? 'write ?? "" for an empty text' : 'write | json for its JSON text';
  const around = isBlankAround ? '; to keep its type, remove the white space or line break around {{ }}' : '';
  throw evaluationError(
    evaluation,
    `text takes strings, numbers and booleans, not ${describeIn(evaluation, value)}; use ?? "" or | json`,
    hint + around,
  );
}

function evaluateToValue(expression: Expression, evaluation: Evaluation): Json {
  const outcome = evaluate(expression, evaluation);
  if (outcome.found) return outcome.value;
  const { message, suggestion } = outcome.explain();
  throw evaluationError(evaluation, message, suggestion);
}

function evaluate(expression: Expression, evaluation: Evaluation): Outcome {
  spend(evaluation, charges.part);
  switch (expression.kind) {
    case 'literal':
      return found(expression.value);
    case 'path':
      return resolvePath(expression, evaluation);
    case 'list':
    case 'object':
      return evaluateLiteral(expression, evaluation);
    case 'filtered':
      return evaluateFiltered(expression, evaluation);
    case 'otherwise':
      return evaluateAlternatives(expression.alternatives, evaluation);
    case 'not':
      return found(!evaluateToBoolean(expression.of, '!', evaluation));
    case 'all':
      return found(expression.of.every((operand) => evaluateToBoolean(operand, '&&', evaluation)));
    case 'any':
      return found(expression.of.some((operand) => evaluateToBoolean(operand, '||', evaluation)));
    case 'comparison':
      return evaluateComparison(expression, evaluation);
    case 'sum':
    case 'product':
      return evaluateCalculation(expression, evaluation);
  }
}

/** A missing part makes the whole missing, so that `??` covers it. */
function evaluateLiteral(literal: Literal, evaluation: Evaluation): Outcome {
  const parts = partsOf(literal);
  spendValues(evaluation, parts.length + 1);
  const values: Json[] = [];
  for (const part of parts) {
    const outcome = evaluate(part, evaluation);
    if (!outcome.found) return outcome;
    values.push(outcome.value);
  }
  if (literal.kind === 'list') return found(values);
  const object: Record<string, Json> = {};
  for (const [index, [key]] of literal.entries.entries()) {
    spendRead(evaluation, key.length);
    setMember(object, key, values[index] ?? null);
  }
  return found(object);
}

function evaluateFiltered(
  expression: Extract<Expression, { kind: 'filtered' }>,
  evaluation: Evaluation,
): Outcome {
  let outcome = evaluate(expression.of, evaluation);
  for (const { name, argument, values: written = [], operator } of expression.filters) {
    if (name === 'default') {
      if (!outcome.found || outcome.value === null) outcome = evaluateAlternatives(written, evaluation);
    } else if (outcome.found) {
      const values = written.map((value) => evaluateToValue(value, evaluation));
      const { value } = outcome;
      spend(evaluation, charges.filter);
      outcome = knownFilters[name].apply({ value, argument, values, operator, evaluation });
    }
  }
  return outcome;
}

/** The first value that is neither missing nor null; otherwise the outcome of the last one. */
function evaluateAlternatives(alternatives: readonly Expression[], evaluation: Evaluation): Outcome {
  let outcome: Outcome = found(null);
  for (const alternative of alternatives) {
    outcome = evaluate(alternative, evaluation);
    if (outcome.found && outcome.value !== null) return outcome;
  }
  return outcome;
}

function evaluateToBoolean(expression: Expression, operator: string, evaluation: Evaluation): boolean {
  const value = evaluateToValue(expression, evaluation);
  if (typeof value === 'boolean') return value;
  throw evaluationError(
    evaluation,
    `${operator} takes booleans, not ${describeIn(evaluation, value)}`,
    'compare instead: a == b',
  );
}

function evaluateComparison(
  { first, rest }: Extract<Expression, { kind: 'comparison' }>,
  evaluation: Evaluation,
): Outcome {
  let left = evaluateToValue(first, evaluation);
  for (const { operator, right } of rest) {
    left = compareValues({ left, operator, right: evaluateToValue(right, evaluation) }, evaluation);
  }
  return found(left);
}

/** A missing operand makes the whole missing, so that `??` covers it. */
function evaluateCalculation(
  { first, rest }: Extract<Expression, { kind: 'sum' | 'product' }>,
  evaluation: Evaluation,
): Outcome {
  let left = evaluate(first, evaluation);
  for (const { operator, right } of rest) {
    if (!left.found) return left;
    const other = evaluate(right, evaluation);
    if (!other.found) return other;
    left = found(calculate({ left: left.value, operator, right: other.value }, evaluation));
  }
  return left;
}

/** A stop on a path. */
interface PathStop {
  readonly value: unknown;
  /** Segments followed so far. */
  readonly position: number;
  /** The indexes of the items that stand for `[*]` so far. */
  readonly items: readonly number[];
}

interface ValueWalk {
  readonly path: Path;
  readonly evaluation: Evaluation;
}

/**
 * Follows a path through a scope by own properties of plain objects and lists only. A key, item or child of null that
 * does not exist is missing. A segment of the wrong form for its value (`[0]` on an object, `.x` on a list or a string)
 * is an error that `??` does not cover.
 */
function resolvePath(path: Path, evaluation: Evaluation): Outcome {
  if (path.root === 'secrets') return found(secretReference(String(path.segments[0])));
  const value = Object.hasOwn(evaluation.scope, path.root) ? evaluation.scope[path.root] : undefined;
  if (value === undefined) return missing(() => ({ message: `${path.root} has no value here` }));
  return follow({ value, position: 0, items: noItems }, { path, evaluation });
}

const noItems: readonly number[] = [];

function follow({ value: start, position: from, items }: PathStop, walk: ValueWalk): Outcome {
  const { path, evaluation } = walk;
  spend(evaluation, charges.part * (path.segments.length - from + 1));
  let value = start;
  for (let position = from; position < path.segments.length; position++) {
    const segment = path.segments[position] ?? '';
    const place = { value, position, items };
    if (value === null) return missingBelowNull(place, walk);
    if (typeof segment === 'object') return followEach(place, walk);
    const next = typeof segment === 'number' ? itemAt(place, segment, walk) : fieldAt(place, segment, walk);
    if (next === undefined) return missingAt(place, segment, walk);
    value = next;
  }
  if (jsonTypeOf(value) !== null) return found(value as Json);
  const name = nameOf({ value, position: path.segments.length, items }, path);
  throw evaluationError(evaluation, `${name} is ${describeValue(value)}`);
}

/** The way to a stop, each `[*]` replaced by the item's index. */
function wayTo({ position, items }: PathStop, { segments }: Path): readonly Segment[] {
  let at = 0;
  return segments
    .slice(0, position)
    .map((segment) => (typeof segment === 'object' ? (items[at++] ?? segment) : segment));
}

function nameOf(place: PathStop, path: Path): string {
  return formatPath(path.root, wayTo(place, path));
}

function itemAt(place: PathStop, index: number, walk: ValueWalk): unknown {
  if (!Array.isArray(place.value)) throw wrongSegment(place, `[${index}]`, walk);
  return Object.hasOwn(place.value, index) ? place.value[index] : undefined;
}

function fieldAt(place: PathStop, key: string, walk: ValueWalk): unknown {
  if (!isPlainObject(place.value)) throw wrongSegment(place, formatPath('', [key]), walk);
  return Object.hasOwn(place.value, key) ? place.value[key] : undefined;
}

function followEach({ value: list, position, items }: PathStop, walk: ValueWalk): Outcome {
  if (!Array.isArray(list)) throw wrongSegment({ value: list, position, items }, '[*]', walk);
  spendValues(walk.evaluation, 2 * list.length); // the item, and its place for an error
  const values: Json[] = [];
  for (const [index, value] of list.entries()) {
    if (value === null) {
      values.push(null); // for example an item with a tolerated failure
      continue;
    }
    const outcome = follow({ value, position: position + 1, items: [...items, index] }, walk);
    if (!outcome.found) return outcome;
    values.push(outcome.value);
  }
  return found(values);
}

function wrongSegment(place: PathStop, segment: string, { path, evaluation }: ValueWalk) {
  const seen = describeIn(evaluation, place.value);
  return evaluationError(evaluation, `${segment} does not apply to ${nameOf(place, path)}, which is ${seen}`);
}

const defaultHint = 'add ?? with a default where it may be missing';

function missingBelowNull(place: PathStop, { path }: ValueWalk): Outcome {
  return missing(() => ({
    message: `${formatPath(path.root, path.segments)} does not exist: ${nameOf(place, path)} is null`,
    suggestion: defaultHint,
  }));
}

function missingAt(place: PathStop, segment: string | number, { path, evaluation }: ValueWalk): Outcome {
  return missing(() => {
    const wanted = formatPath(path.root, [...wayTo(place, path), segment]);
    return {
      message: `${wanted} does not exist: ${nameOf(place, path)} is ${describeIn(evaluation, place.value)}`,
      suggestion: suggestKey(place.value, segment, evaluation) ?? defaultHint,
    };
  });
}

/** The search for the nearest key considers this many keys. */
const consideredKeys = 1_000;
/** No name of another length is suggested. */
const nearLength = 3;

function suggestKey(value: unknown, segment: string | number, evaluation: Evaluation): string | undefined {
  if (typeof segment === 'number' || !isPlainObject(value)) return undefined;
  const near = Object.keys(value)
    .slice(0, consideredKeys)
    .filter((key) => Math.abs(key.length - segment.length) <= nearLength);
  spend(evaluation, near.length * segment.length * charges.part);
  return createNameSuggester(near)(segment);
}
