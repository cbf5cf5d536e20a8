/** The type of an expression's result. Reports expressions that certainly fail or are probably a mistake. */

import { type Expression, type FilterCall, type Literal, partsOf } from '../expression/ast.ts';
import type { ComparisonOperator } from '../expression/language.ts';
import { hasDefault } from '../expression/template.ts';
import { createNameSuggester } from '../nearest-name.ts';
import {
  describeType,
  itemTypeOf,
  typeOfFields,
  typeOfItems,
  typeOfValue,
  unionOf,
} from './combine-types.ts';
import { type FilterType, filterTypeOf } from './filter-types.ts';
import {
  missingValue,
  someValue,
  type TypeContext,
  type TypedValue,
  type TypeFault,
  typeOfPath,
  unknownValue,
} from './path-type.ts';
import {
  anyType,
  aType,
  booleanKinds,
  booleanType,
  type Effort,
  integerType,
  isKind,
  kinds,
  numberType,
  overlapOf,
  type ValueType,
  withoutKinds,
} from './value-type.ts';

type ComparisonFault = Omit<TypeFault, 'offset'>;

interface TypeComparison {
  readonly left: ValueType;
  readonly operator: ComparisonOperator;
  readonly right: ValueType;
}

/** Finds the fault of a comparison; null when there is none. */
function findComparisonFault(comparison: TypeComparison, effort: Effort): ComparisonFault | null {
  const { left, operator, right } = comparison;
  if (operator === '==' || operator === '!=') return compareEqual(comparison, effort);
  if (operator === 'in') return compareIn(left, right);
  const canOrder = [kinds.number, kinds.string].some((kind) => isKind(left, kind) && isKind(right, kind));
  if (canOrder) return null;
  return refuse(
    `${operator} orders two numbers or two strings, not ${describeType(left)} and ${describeType(right)}`,
  );
}

function refuse(message: string): ComparisonFault {
  return { severity: 'error', code: 'operand_invalid', message };
}

function compareEqual({ left, operator, right }: TypeComparison, effort: Effort): ComparisonFault | null {
  if (overlapOf(left, right, effort) !== 'none') return null;
  return {
    severity: 'warning',
    code: 'comparison_constant',
    message: `${describeType(left)} never equals ${describeType(right)}, so this is always ${operator === '!='}`,
    suggestion: suggestValue(left, right),
  };
}

/** Suggests a value for a word that is nearly one of those it is compared with. */
function suggestValue({ strings: left }: ValueType, { strings: right }: ValueType): string | undefined {
  const [word, allowed] = left?.size === 1 ? [left, right] : [right, left];
  const [only, second] = word ?? [];
  if (only === undefined || second !== undefined || allowed === null) return undefined;
  return createNameSuggester(allowed)(only);
}

function compareIn(left: ValueType, right: ValueType): ComparisonFault | null {
  const places = kinds.list | (isKind(left, kinds.string) ? kinds.string | kinds.object : 0);
  if (isKind(right, places)) return null;
  const seen = `${describeType(left)} in ${describeType(right)}`;
  return refuse(`in looks for a value in a list, or for a string in a string or among keys, not for ${seen}`);
}

/** False: the filter succeeds only for an empty list. */
function hasItems(type: ValueType, { items }: FilterType): boolean {
  if (items === undefined || !isKind(type, kinds.list) || type.list.most === 0) return true;
  return isKind(itemTypeOf(type), items);
}

/** @param isCovered an outer `??` covers a missing value */
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
    case 'list':
    case 'object':
      return typeOfLiteral(expression, context, isCovered);
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
    case 'sum':
    case 'product':
      return typeOfCalculation(expression, context, isCovered);
  }
}

/** A missing part makes the whole missing. */
function typeOfLiteral(literal: Literal, context: TypeContext, isCovered: boolean): TypedValue {
  const values = partsOf(literal).map((part) => typeOfExpression(part, context, isCovered));
  if (values.some(({ missing }) => missing === 'yes')) return missingValue;
  const types = values.map((value) => () => value.type);
  const type =
    literal.kind === 'list'
      ? typeOfItems(types)
      : typeOfFields(new Map(literal.entries.map(([key], index) => [key, types[index] ?? (() => anyType)])));
  return { type, missing: values.some(({ missing }) => missing === 'maybe') ? 'maybe' : 'no' };
}

type Of<Kind extends Expression['kind']> = Extract<Expression, { kind: Kind }>;

function typeOfFiltered(
  { of, filters }: Of<'filtered'>,
  context: TypeContext,
  isCovered: boolean,
): TypedValue {
  let value = typeOfExpression(of, context, isCovered || hasDefault(filters));
  for (const [index, call] of filters.entries()) {
    const { name, argument, values: written = [] } = call;
    const isBelowDefault = isCovered || hasDefault(filters.slice(index + 1));
    if (name === 'default') {
      const before = value;
      value = firstOf([() => before, () => typeOfAlternatives(written, context, isBelowDefault)]);
      continue;
    }
    const filter = filterTypeOf(name);
    if (filter === null) return unknownValue;
    const values = written.map((each) => typeOfArgument(each, { filter, name }, context));
    if (value.missing === 'yes' || value.type.kinds === 0) continue;
    const { type, missing } = value;
    if (!isKind(type, filter.takes) || !hasItems(type, filter)) {
      const operand: TypedValue = { type, missing: isBelowDefault ? missing : 'no' };
      context.report(operandFault(of, operand, { rule: `${name} takes ${filter.words}` }));
      return unknownValue;
    }
    const result = filter.yields(type, { argument, values });
    const isReported = result.missing === 'yes' || (result.missing === 'maybe' && filter.isAsserted !== true);
    if (isReported && result !== unknownValue && !isBelowDefault) {
      context.report({ ...missingFault(call, result.missing), offset: offsetOf(of) });
    }
    value = { type: result.type, missing: missing === 'no' ? result.missing : 'maybe' };
  }
  return value;
}

function typeOfArgument(
  expression: Expression,
  { filter, name }: { readonly filter: FilterType; readonly name: string },
  context: TypeContext,
): ValueType {
  const { type } = typeOfExpression(expression, context);
  const wanted = filter.arguments;
  if (wanted === undefined || type.kinds === 0 || isKind(type, wanted)) return type;
  const words = describeType(aType({ kinds: wanted }));
  context.report(operandFault(expression, someValue(type), { rule: `the argument of ${name} is ${words}` }));
  return anyType;
}

function missingFault({ name, argument }: FilterCall, missing: 'maybe' | 'yes'): Omit<TypeFault, 'offset'> {
  if (name === 'at')
    return { severity: 'error', code: 'path_unknown', message: 'nothing is ever at this place' };
  if (name !== 'map') return emptyListFault(name, missing);
  const isCertain = missing === 'yes';
  return {
    severity: isCertain ? 'error' : 'warning',
    code: isCertain ? 'path_unknown' : 'path_optional',
    message: `the field ${JSON.stringify(argument)} ${isCertain ? 'is in no item' : 'may be missing in an item'}`,
    suggestion: 'add ?? with a default',
  };
}

function emptyListFault(filter: string, missing: 'maybe' | 'yes'): Omit<TypeFault, 'offset'> {
  const isCertain = missing === 'yes';
  return {
    severity: isCertain ? 'error' : 'warning',
    code: isCertain ? 'path_unknown' : 'path_optional',
    message: `the list ${isCertain ? 'is always' : 'may be'} empty, then it has no ${filter} item`,
    suggestion: 'add ?? with a default',
  };
}

/** The first value that is neither missing nor null; otherwise the outcome of the last one. */
function typeOfAlternatives(
  alternatives: readonly Expression[],
  context: TypeContext,
  isCovered: boolean,
): TypedValue {
  return firstOf(
    alternatives.map((alternative, index) => () => {
      const isLast = index === alternatives.length - 1;
      return typeOfExpression(alternative, context, isCovered || !isLast);
    }),
  );
}

/** @param values those after one that is neither missing nor null are not read */
function firstOf(values: readonly (() => TypedValue)[]): TypedValue {
  const types: ValueType[] = [];
  let missing: TypedValue['missing'] = 'no';
  for (const [index, read] of values.entries()) {
    const value = read();
    const isLast = index === values.length - 1;
    types.push(isLast ? value.type : withoutKinds(value.type, kinds.null));
    if (isLast) missing = value.missing;
    else if (value.missing === 'no' && !isKind(value.type, kinds.null)) break;
  }
  const type = unionOf(types);
  return { type, missing: missing === 'yes' && type.kinds !== 0 ? 'maybe' : missing };
}

function requireBoolean(operand: Expression, operator: string, context: TypeContext): void {
  const { type } = typeOfExpression(operand, context);
  if (type.kinds === 0 || isKind(type, booleanKinds)) return;
  const rule = `${operator} takes booleans`;
  context.report(operandFault(operand, someValue(type), { rule, suggestion: 'compare instead: a == b' }));
}

function typeOfComparison({ first, rest }: Of<'comparison'>, context: TypeContext): TypedValue {
  let left = typeOfExpression(first, context).type;
  let before = first;
  for (const { operator, right } of rest) {
    const other = typeOfExpression(right, context).type;
    compare(before, { left, operator, right: other }, context);
    left = booleanType;
    before = right;
  }
  return someValue(left);
}

/** A missing operand makes the whole missing. */
function typeOfCalculation(
  { first, rest }: Of<'sum' | 'product'>,
  context: TypeContext,
  isCovered: boolean,
): TypedValue {
  let missing: TypedValue['missing'] = 'no';
  let areIntegers = true;
  const operator = rest[0]?.operator ?? '+';
  for (const operand of [first, ...rest.map(({ right }) => right)]) {
    const value = typeOfExpression(operand, context, isCovered);
    if (value.missing === 'yes') return missingValue;
    if (value.missing === 'maybe') missing = 'maybe';
    if (value.type.kinds === 0) continue;
    if (!isKind(value.type, kinds.number)) {
      const seen: TypedValue = isCovered ? value : someValue(value.type);
      context.report(operandFault(operand, seen, { rule: `${operator} takes numbers` }));
      return unknownValue;
    }
    areIntegers &&= value.type.isInteger;
  }
  const isWhole = areIntegers && rest.every(({ operator: sign }) => sign !== '/');
  return { type: isWhole ? integerType : numberType, missing };
}

function compare(expression: Expression, comparison: TypeComparison, context: TypeContext): void {
  if (comparison.left.kinds === 0 || comparison.right.kinds === 0) return;
  const fault = findComparisonFault(comparison, context.effort);
  if (fault !== null) context.report({ ...fault, offset: offsetOf(expression) });
}

/** The fault is certain if the value cannot be missing. */
export function operandFault(
  expression: Expression,
  { type, missing }: TypedValue,
  { rule, suggestion }: { readonly rule: string; readonly suggestion?: string },
): TypeFault {
  return {
    severity: missing === 'no' ? 'error' : 'warning',
    code: 'operand_invalid',
    message: `${rule}, not ${describeType(type)}`,
    offset: offsetOf(expression),
    suggestion,
  };
}

/** The offset of its first path. */
export function offsetOf(expression: Expression): number | undefined {
  switch (expression.kind) {
    case 'literal':
      return undefined;
    case 'path':
      return expression.offset;
    case 'list':
    case 'object':
      return firstOffset(partsOf(expression));
    case 'filtered':
    case 'not':
      return offsetOf(expression.of);
    case 'otherwise':
      return firstOffset(expression.alternatives);
    case 'all':
    case 'any':
      return firstOffset(expression.of);
    case 'comparison':
    case 'sum':
    case 'product':
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
