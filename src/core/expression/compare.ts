import type { Json } from '../../contracts/primitives.ts';
import { isList, isPlainObject } from '../json-type.ts';
import { isEqual } from './equality.ts';
import { describeValue, type Evaluation, evaluationError, spend } from './evaluation.ts';
import type { ComparisonOperator } from './symbols.ts';
import { includesText } from './text-search.ts';

type Order = Exclude<ComparisonOperator, '==' | '!=' | 'in'>;

/** @throws ExpressionError for operands that the operator does not take */
export function compareValues(
  left: Json,
  operator: ComparisonOperator,
  right: Json,
  evaluation: Evaluation,
): boolean {
  if (operator === '==') return areEqual(left, right, evaluation);
  if (operator === '!=') return !areEqual(left, right, evaluation);
  if (operator === 'in') return isContained(left, right, evaluation);
  if (typeof left === 'number' && typeof right === 'number') return isOrdered(left, operator, right);
  if (typeof left === 'string' && typeof right === 'string') {
    spend(evaluation, Math.min(left.length, right.length));
    return isOrdered(left, operator, right);
  }
  throw evaluationError(
    evaluation,
    `${operator} orders two numbers or two strings, not ${describeValue(left)} and ${describeValue(right)}`,
  );
}

function areEqual(left: Json, right: Json, evaluation: Evaluation): boolean {
  return isEqual(left, right, (amount) => spend(evaluation, amount));
}

/** Strings are ordered by UTF-16 unit. */
function isOrdered<Value extends number | string>(left: Value, operator: Order, right: Value): boolean {
  switch (operator) {
    case '<':
      return left < right;
    case '<=':
      return left <= right;
    case '>':
      return left > right;
    case '>=':
      return left >= right;
  }
}

function isContained(left: Json, right: Json, evaluation: Evaluation): boolean {
  if (isList(right)) return right.some((item) => areEqual(left, item, evaluation));
  if (typeof left === 'string' && typeof right === 'string') {
    spend(evaluation, left.length + right.length);
    return includesText(right, left);
  }
  if (typeof left === 'string' && isPlainObject(right)) return Object.hasOwn(right, left);
  throw evaluationError(
    evaluation,
    `in looks for a value in a list, or for a string in a string or among keys, not for ${describeValue(left)} in ${describeValue(right)}`,
  );
}
