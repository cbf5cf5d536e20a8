/**
 * Evaluates compiled templates: total, without side effects, reading nothing but the scope. Results share no mutable
 * state with the scope or the template, and are never scanned for expressions again. A path follows own properties of
 * plain objects and lists only. A key, item or child of null that does not exist is missing. A segment of the wrong
 * form for its value (`[0]` on an object, `.x` on a list or a string) is an error that `??` does not cover.
 */
import type { Json } from '../../contracts/primitives.ts';
import { isPlainObject, jsonTypeOf } from '../json/values.ts';
import { createNameSuggester } from '../nearest-name.ts';
import { type Expression, formatPath, type Literal, type Path, partsOf, type Segment } from './ast.ts';
import { calculate, compareValues } from './compare.ts';
import {
  copyValue,
  describeValue,
  type Evaluation,
  type ExpressionScope,
  evaluationError,
  found,
  missing,
  type Outcome,
  type SkillScope,
  scalarText,
  spend,
  spendItems,
  type WrapScope,
} from './evaluation.ts';
import { knownFilters } from './filters.ts';
import { expressionLimits, secretReference } from './language.ts';
import type { CompiledTemplate, TemplateNode } from './template.ts';

/**
 * @param built characters that it may build or compare
 * @throws ExpressionError when a path is missing or a value has the wrong type for its place
 */
export function evaluateTemplate(
  template: CompiledTemplate,
  scope: ExpressionScope | SkillScope | WrapScope,
  built: number = expressionLimits.built,
): Json {
  return evaluateNode(template.root, scope, { left: built });
}

function evaluateNode(node: TemplateNode, scope: Evaluation['scope'], budget: Evaluation['budget']): Json {
  switch (node.kind) {
    case 'literal':
      return copyValue(node.value, { scope, pointer: node.pointer, budget });
    case 'list':
      return node.items.map((item) => evaluateNode(item, scope, budget));
    case 'object':
      return Object.fromEntries(
        node.entries.map(([key, value]) => [key, evaluateNode(value, scope, budget)]),
      );
    case 'expression':
      return evaluateWhole(node.expression, { scope, pointer: node.pointer, budget });
    case 'text':
      return evaluateText(node.parts, { scope, pointer: node.pointer, budget });
  }
}

/** Evaluates the parts of one string, each to its text. @throws ExpressionError */
export function evaluateParts(
  parts: readonly (string | Expression)[],
  scope: ExpressionScope,
  pointer: string,
): readonly string[] {
  return textsOf(parts, { scope, pointer, budget: { left: expressionLimits.built } });
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
    spend(evaluation, text.length);
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
    `text takes strings, numbers and booleans, not ${describeValue(value)}; use ?? "" or | json`,
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
  spendItems(evaluation, parts.length);
  const values: Json[] = [];
  for (const part of parts) {
    const outcome = evaluate(part, evaluation);
    if (!outcome.found) return outcome;
    values.push(outcome.value);
  }
  if (literal.kind === 'list') return found(values);
  for (const [key] of literal.entries) spend(evaluation, key.length);
  return found(Object.fromEntries(literal.entries.map(([key], index) => [key, values[index] ?? null])));
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
    `${operator} takes booleans, not ${describeValue(value)}`,
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

/** A stop on a path: the value, and the concrete path to it. */
interface PathStop {
  readonly value: unknown;
  /** Segments followed so far, each `[*]` replaced by the item's index. */
  readonly trail: readonly Segment[];
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
  return follow({ value, trail: [] }, { path, evaluation });
}

function follow(start: PathStop, walk: ValueWalk): Outcome {
  const { path, evaluation } = walk;
  let place = start;
  for (let position = start.trail.length; position < path.segments.length; position++) {
    const segment = path.segments[position] ?? '';
    if (place.value === null) return missingBelowNull(place, path);
    if (typeof segment === 'object') return followEach(place, walk);
    const next = typeof segment === 'number' ? itemAt(place, segment, walk) : fieldAt(place, segment, walk);
    if (next === undefined) return missingAt(place, segment, path);
    place = { value: next, trail: [...place.trail, segment] };
  }
  if (jsonTypeOf(place.value) === null)
    throw evaluationError(evaluation, `${nameOf(place, path)} is ${describeValue(place.value)}`);
  return found(place.value as Json);
}

function nameOf(place: PathStop, path: Path): string {
  return formatPath(path.root, place.trail);
}

function itemAt(place: PathStop, index: number, walk: ValueWalk): unknown {
  if (!Array.isArray(place.value)) throw wrongSegment(place, `[${index}]`, walk);
  return Object.hasOwn(place.value, index) ? place.value[index] : undefined;
}

function fieldAt(place: PathStop, key: string, walk: ValueWalk): unknown {
  if (!isPlainObject(place.value)) throw wrongSegment(place, formatPath('', [key]), walk);
  return Object.hasOwn(place.value, key) ? place.value[key] : undefined;
}

function followEach(place: PathStop, walk: ValueWalk): Outcome {
  if (!Array.isArray(place.value)) throw wrongSegment(place, '[*]', walk);
  spendItems(walk.evaluation, place.value.length);
  const values: Json[] = [];
  for (const [index, value] of place.value.entries()) {
    if (value === null) {
      values.push(null); // for example an item with a tolerated failure
      continue;
    }
    const outcome = follow({ value, trail: [...place.trail, index] }, walk);
    if (!outcome.found) return outcome;
    values.push(outcome.value);
  }
  return found(values);
}

function wrongSegment(place: PathStop, segment: string, { path, evaluation }: ValueWalk) {
  return evaluationError(
    evaluation,
    `${segment} does not apply to ${nameOf(place, path)}, which is ${describeValue(place.value)}`,
  );
}

const defaultHint = 'add ?? with a default where it may be missing';

function missingBelowNull(place: PathStop, path: Path): Outcome {
  return missing(() => ({
    message: `${formatPath(path.root, path.segments)} does not exist: ${nameOf(place, path)} is null`,
    suggestion: defaultHint,
  }));
}

function missingAt(place: PathStop, segment: string | number, path: Path): Outcome {
  return missing(() => {
    const wanted = formatPath(path.root, [...place.trail, segment]);
    return {
      message: `${wanted} does not exist: ${nameOf(place, path)} is ${describeValue(place.value)}`,
      suggestion: suggestKey(place.value, segment) ?? defaultHint,
    };
  });
}

/** The search for the nearest key considers this many keys. */
const consideredKeys = 1_000;

function suggestKey(value: unknown, segment: string | number): string | undefined {
  if (typeof segment === 'number' || !isPlainObject(value)) return undefined;
  return createNameSuggester(Object.keys(value).slice(0, consideredKeys))(segment);
}
