/** The type of what an expression yields; what is certain to fail, or cannot have been meant, is reported. */
import type { Expression } from '../expression/ast.ts';
import type { ComparisonOperator } from '../expression/symbols.ts';
import { unionOf } from './combine-types.ts';
import { compareTypes } from './comparison-type.ts';
import { describeType } from './describe-type.ts';
import { filterTypeOf, isJoinable } from './filter-type.ts';
import { typeOfValue } from './json-value-type.ts';
import { typeOfPath } from './path-type.ts';
import { someValue, type TypeContext, type TypedValue, unknownValue } from './typed-value.ts';
import { booleanKinds, booleanType, isKind, kinds, type ValueType, withoutKinds } from './value-type.ts';

/** @param isCovered what is missing is covered by a `??` around it */
export function typeOfExpression(
  expression: Expression,
  context: TypeContext,
  isCovered = false,
): TypedValue {
  switch (expression.kind) {
    case 'literal':
      return someValue(typeOfValue(expression.value));
    case 'path':
      return typeOfPath(expression, context, isCovered);
    case 'filtered':
      return typeOfFiltered(expression, context, isCovered);
    case 'otherwise':
      return typeOfAlternatives(expression.alternatives, context, isCovered);
    case 'not':
      requireBoolean(expression.of, '!', context);
      return someValue(booleanType);
    case 'all':
    case 'any':
      for (const operand of expression.of) {
        requireBoolean(operand, expression.kind === 'all' ? '&&' : '||', context);
      }
      return someValue(booleanType);
    case 'comparison':
      return typeOfComparison(expression, context);
  }
}

type Of<Kind extends Expression['kind']> = Extract<Expression, { kind: Kind }>;

function typeOfFiltered(
  { of, filters }: Of<'filtered'>,
  context: TypeContext,
  isCovered: boolean,
): TypedValue {
  let value = typeOfExpression(of, context, isCovered);
  for (const { name } of filters) {
    const filter = filterTypeOf(name);
    if (filter === null) return unknownValue;
    if (value.missing === 'yes' || value.type.kinds === 0) continue;
    const { type, missing } = value;
    const isTaken = isKind(type, filter.takes) && (name !== 'join' || isJoinable(type));
    if (!isTaken) {
      const takes = name === 'join' ? 'a list of strings, numbers and booleans' : filter.words;
      reportOperand(of, { type, missing: isCovered ? missing : 'no' }, `${name} takes ${takes}`, context);
      return unknownValue;
    }
    const result = filter.yields(type);
    if (result.missing !== 'no' && !isCovered) reportEmpty(of, name, result.missing, context);
    value = { type: result.type, missing: missing === 'no' ? result.missing : 'maybe' };
  }
  return value;
}

function reportEmpty(of: Expression, filter: string, missing: 'maybe' | 'yes', context: TypeContext): void {
  const isCertain = missing === 'yes';
  context.report({
    severity: isCertain ? 'error' : 'warning',
    code: isCertain ? 'path_unknown' : 'path_optional',
    message: `the list ${isCertain ? 'is always' : 'may be'} empty, then it has no ${filter} item`,
    offset: offsetOf(of),
    suggestion: 'add ?? with a default',
  });
}

/** The first that is neither missing nor null; else what the last one is. */
function typeOfAlternatives(
  alternatives: readonly Expression[],
  context: TypeContext,
  isCovered: boolean,
): TypedValue {
  const types: ValueType[] = [];
  let missing: TypedValue['missing'] = 'no';
  for (const [index, alternative] of alternatives.entries()) {
    const isLast = index === alternatives.length - 1;
    const value = typeOfExpression(alternative, context, isCovered || !isLast);
    types.push(isLast ? value.type : withoutKinds(value.type, kinds.null));
    if (isLast) missing = value.missing;
    else if (value.missing === 'no' && !isKind(value.type, kinds.null)) break; // the rest is never looked at
  }
  const type = unionOf(types);
  return { type, missing: missing === 'yes' && type.kinds !== 0 ? 'maybe' : missing };
}

function requireBoolean(operand: Expression, operator: string, context: TypeContext): void {
  const { type } = typeOfExpression(operand, context);
  if (type.kinds === 0 || isKind(type, booleanKinds)) return;
  reportOperand(operand, someValue(type), `${operator} takes booleans`, context, 'compare instead: a == b');
}

function typeOfComparison({ first, rest }: Of<'comparison'>, context: TypeContext): TypedValue {
  let left = typeOfExpression(first, context).type;
  let before = first;
  for (const { operator, right } of rest) {
    const other = typeOfExpression(right, context).type;
    compare(before, [left, operator, other], context);
    left = booleanType;
    before = right;
  }
  return someValue(left);
}

function compare(
  expression: Expression,
  [left, operator, right]: readonly [ValueType, ComparisonOperator, ValueType],
  context: TypeContext,
): void {
  if (left.kinds === 0 || right.kinds === 0) return;
  const fault = compareTypes(left, operator, right, context.effort);
  if (fault !== null) context.report({ ...fault, offset: offsetOf(expression) });
}

/** Certain where the value cannot be missing as well. */
export function reportOperand(
  expression: Expression,
  { type, missing }: TypedValue,
  rule: string,
  context: TypeContext,
  suggestion?: string,
): void {
  context.report({
    severity: missing === 'no' ? 'error' : 'warning',
    code: 'operand_invalid',
    message: `${rule}, not ${describeType(type)}`,
    offset: offsetOf(expression),
    suggestion,
  });
}

/** Where its first path stands. */
export function offsetOf(expression: Expression): number | undefined {
  switch (expression.kind) {
    case 'literal':
      return undefined;
    case 'path':
      return expression.offset;
    case 'filtered':
    case 'not':
      return offsetOf(expression.of);
    case 'otherwise':
      return firstOffset(expression.alternatives);
    case 'all':
    case 'any':
      return firstOffset(expression.of);
    case 'comparison':
      return firstOffset([expression.first, ...expression.rest.map(({ right }) => right)]);
  }
}

function firstOffset(expressions: readonly Expression[]): number | undefined {
  for (const expression of expressions) {
    const offset = offsetOf(expression);
    if (offset !== undefined) return offset;
  }
  return undefined;
}
