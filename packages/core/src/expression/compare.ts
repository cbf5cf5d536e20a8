/** Equality, order and containment of values, and arithmetic. */
import { ExactNumber } from '../contracts/exact-json.ts';
import type { Json } from '../contracts/primitives.ts';
import { isList, isPlainObject } from '../json/values.ts';
import { describeIn, type Evaluation, evaluationError, spend, spendRead } from './evaluation.ts';
import type { ArithmeticOperator, ComparisonOperator } from './language.ts';
import { charges } from './meter.ts';

type Pair = readonly [Json, Json];

/**
 * Strict and deep: same type, same items in order, same keys in any order; values of any depth.
 * @param charge receives the units of work before it is done; may throw
 */
export function isEqual(a: Json, b: Json, charge: (units: number) => void = () => {}): boolean {
  const pairs: Pair[] = [[a, b]];
  for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
    charge(charges.value);
    const parts = comparePair(pair, charge);
    if (parts === null) return false;
    for (const part of parts) pairs.push(part);
  }
  return true;
}

const nothing: readonly Pair[] = [];

/** The pairs left to compare, each charged when it is made; null when the two differ. */
function comparePair([a, b]: Pair, charge: (units: number) => void): readonly Pair[] | null {
  if (typeof a === 'string' && typeof b === 'string' && a.length === b.length)
    charge(a.length / charges.charactersRead);
  if (a === b) return nothing;
  if ((a as unknown) instanceof ExactNumber && (b as unknown) instanceof ExactNumber)
    return isSameNumber(a as unknown as ExactNumber, b as unknown as ExactNumber, charge) ? nothing : null;
  if (isList(a)) {
    if (!isList(b) || a.length !== b.length) return null;
    charge(a.length * charges.value);
    return a.map((item, index): Pair => [item, b[index] ?? null]);
  }
  if (!isPlainObject(a) || !isPlainObject(b)) return null;
  const keys = Object.keys(a);
  charge(2 * keys.length * charges.value);
  const others = Object.keys(b).length;
  if (keys.length !== others) charge(others * charges.value);
  if (keys.length !== others || !keys.every((key) => Object.hasOwn(b, key))) return null;
  return keys.map((key): Pair => [a[key] ?? null, b[key] ?? null]);
}

function isSameNumber(a: ExactNumber, b: ExactNumber, charge: (units: number) => void): boolean {
  charge(charges.conversion + (a.written.length + b.written.length) / charges.charactersBuilt);
  return a.equals(b);
}

/**
 * Whether one text contains another, in time linear in both (Knuth, Morris, Pratt). The engine's own search takes the
 * product of both for adversarial texts, which is seconds at sizes that a job may have.
 */
export function includesText(text: string, wanted: string): boolean {
  if (wanted.length <= shortText) return text.includes(wanted);
  const search = prepareSearch(wanted);
  let matched = 0;
  for (let at = 0; at < text.length && matched < wanted.length; at++) {
    matched = extend(search, matched, text.charCodeAt(at));
  }
  return matched === wanted.length;
}

/** Up to this length, the product is no more than a small multiple of the text. */
const shortText = 32;

interface TextSearch {
  readonly wanted: string;
  /** For each prefix length: the length of the longest shorter prefix that is also a suffix. */
  readonly borders: Int32Array;
}

function prepareSearch(wanted: string): TextSearch {
  const borders = new Int32Array(wanted.length + 1);
  const search = { wanted, borders };
  for (let length = 2; length <= wanted.length; length++) {
    borders[length] = extend(search, borders[length - 1] ?? 0, wanted.charCodeAt(length - 1));
  }
  return search;
}

/**
 * The number of units of `wanted` that match up to and including this unit, given that `matched` units matched before
 * it.
 */
function extend({ wanted, borders }: TextSearch, matched: number, unit: number): number {
  let length = matched;
  while (length > 0 && wanted.charCodeAt(length) !== unit) length = borders[length] ?? 0;
  return wanted.charCodeAt(length) === unit ? length + 1 : 0;
}

type Order = Exclude<ComparisonOperator, '==' | '!=' | 'in'>;

interface ValueComparison {
  readonly left: Json;
  readonly operator: ComparisonOperator;
  readonly right: Json;
}

/** @throws ExpressionError for operands that the operator does not accept */
export function compareValues({ left, operator, right }: ValueComparison, evaluation: Evaluation): boolean {
  if (operator === '==') return areEqual(left, right, evaluation);
  if (operator === '!=') return !areEqual(left, right, evaluation);
  if (operator === 'in') return isContained(left, right, evaluation);
  if (typeof left === 'number' && typeof right === 'number') return isOrdered(left, operator, right);
  if (typeof left === 'string' && typeof right === 'string') {
    spendRead(evaluation, left.length + right.length);
    return isOrdered(left, operator, right);
  }
  const seen = `${describeIn(evaluation, left)} and ${describeIn(evaluation, right)}`;
  throw evaluationError(evaluation, `${operator} orders two numbers or two strings, not ${seen}`);
}

function areEqual(left: Json, right: Json, evaluation: Evaluation): boolean {
  return isEqual(left, right, (units) => spend(evaluation, Math.ceil(units)));
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
    spend(evaluation, Math.ceil((left.length + right.length) / charges.charactersSearched));
    return includesText(right, left);
  }
  if (typeof left === 'string' && isPlainObject(right)) {
    spendRead(evaluation, left.length);
    return Object.hasOwn(right, left);
  }
  const seen = `${describeIn(evaluation, left)} in ${describeIn(evaluation, right)}`;
  throw evaluationError(
    evaluation,
    `in looks for a value in a list, or for a string in a string or among keys, not for ${seen}`,
  );
}

interface Calculation {
  readonly left: Json;
  readonly operator: ArithmeticOperator;
  readonly right: Json;
}

/** @throws ExpressionError for operands other than numbers, for a division by 0, and for a result beyond all numbers */
export function calculate({ left, operator, right }: Calculation, evaluation: Evaluation): number {
  if (typeof left !== 'number' || typeof right !== 'number') {
    const seen = describeIn(evaluation, typeof left === 'number' ? right : left);
    throw evaluationError(
      evaluation,
      `${operator} takes numbers, not ${seen}`,
      'a text becomes one by | number',
    );
  }
  if (operator === '/' && right === 0) throw evaluationError(evaluation, 'a number is divided by 0');
  const result = resultOf(left, operator, right);
  if (Number.isFinite(result)) return result + 0; // never -0
  throw evaluationError(evaluation, `the result of ${operator} is too large for a number`);
}

function resultOf(left: number, operator: ArithmeticOperator, right: number): number {
  switch (operator) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '/':
      return left / right;
  }
}
