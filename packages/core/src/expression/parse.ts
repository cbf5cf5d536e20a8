/**
 * One function per rule of the grammar (grammar.ts). Every function stops at the first token that is not its own. None
 * backtracks, so the time is linear in the length of the text.
 */
import { isKept } from '../contracts/exact-json.ts';
import { describeLostNumber } from '../json/numbers.ts';
import { isForbiddenName, type Scalar } from '../json/values.ts';
import { createNameSuggester } from '../nearest-name.ts';
import type { Expression, FilterCall, Path, Segment } from './ast.ts';
import { type AnyFilterName, knownFilters } from './filters.ts';
import {
  type ArithmeticOperator,
  arithmeticOperators,
  type ComparisonOperator,
  comparisonOperators,
  delimiters,
  type ExpressionSyntaxError,
  expressionLimits,
  keywords,
  operators,
  tokenPatterns,
} from './language.ts';
import {
  acceptSymbol,
  advance,
  type Cursor,
  isAtClose,
  isSymbol,
  parseNested,
  syntaxError,
  type Token,
  unexpected,
} from './tokens.ts';

const plainIndex = new RegExp(`^(?:${tokenPatterns.index})$`);

/**
 * Reads `root.name["key"][0][*]`; the cursor is at the root's name. From a bracket with an expression on, each segment
 * is a call of the filter `at`.
 */
function parsePath(cursor: Cursor): Expression {
  const root = advance(cursor);
  const { roots, rootHint } = cursor.dialect;
  const name = roots.find((known) => known === root.text);
  if (name === undefined) {
    throw syntaxError(
      cursor,
      `${JSON.stringify(root.text.slice(0, 64))} is no root; there are ${roots.join(', ')}`,
      { code: 'root_unknown', suggestion: createNameSuggester(roots)(root.text) ?? rootHint, at: root.start },
    );
  }
  const segments: Segment[] = [];
  const filters: FilterCall[] = [];
  for (;;) {
    const start = cursor.token.start;
    const segment = parseSegment(cursor);
    if (segment === null) {
      const path: Path = { kind: 'path', root: name, segments, offset: root.start };
      return filters.length === 0 ? path : { kind: 'filtered', of: path, filters };
    }
    if (isExpression(segment) || filters.length > 0) filters.push(at(cursor, start, segment));
    else segments.push(segment);
    if (segments.length + filters.length > expressionLimits.pathSegments) {
      throw syntaxError(cursor, `the path has more than ${expressionLimits.pathSegments} segments`, {
        code: 'expression_limit',
        at: start,
      });
    }
  }
}

/** A segment, or an expression that yields one; null: the path has ended. */
function parseSegment(cursor: Cursor): Segment | Expression | null {
  if (acceptSymbol(cursor, '.')) return parseName(cursor);
  return acceptSymbol(cursor, '[') ? parseBracket(cursor) : null;
}

function isExpression(segment: Segment | Expression): segment is Expression {
  return typeof segment === 'object' && 'kind' in segment;
}

function at(cursor: Cursor, start: number, segment: Segment | Expression): FilterCall {
  if (isExpression(segment)) return { name: 'at', argument: null, values: [segment] };
  if (typeof segment !== 'object')
    return { name: 'at', argument: null, values: [{ kind: 'literal', value: segment }] };
  throw syntaxError(cursor, '[*] cannot follow a bracket with an expression', {
    at: start,
    suggestion: 'the field of every item is <list> | map("field")',
  });
}

function parseName(cursor: Cursor): string {
  if (cursor.token.kind === 'name') return allowedKey(cursor, advance(cursor));
  const error = unexpected(cursor, 'a name after the dot');
  if (cursor.token.kind === 'bad' || cursor.token.kind === 'end') throw error;
  throw syntaxError(cursor, error.message, { suggestion: 'other keys are written ["key"], list items [0]' });
}

function parseBracket(cursor: Cursor): Segment | Expression {
  const segment = parseBracketContent(cursor);
  if (!acceptSymbol(cursor, ']')) throw unexpected(cursor, '] after the index or key');
  return segment;
}

function parseBracketContent(cursor: Cursor): Segment | Expression {
  if (acceptSymbol(cursor, '*')) return { each: true };
  if (isSymbol(cursor, ']'))
    throw unexpected(cursor, 'an index, a "key", an expression or * in the brackets');
  const { token } = cursor;
  const place = parseNested(cursor, parseExpression);
  if (place.kind !== 'literal') return place;
  if (token.kind === 'string') return allowedKey(cursor, token);
  return token.kind === 'number' ? readIndex(cursor, token) : place;
}

function readIndex(cursor: Cursor, { text, start }: Token): number {
  if (plainIndex.test(text)) return Number(text);
  throw syntaxError(cursor, `${text.slice(0, 40)} is no index; an index is 0, 1, 2, ...`, {
    at: start,
    suggestion: text.startsWith('-') ? 'the last item is <list> | last' : undefined,
  });
}

function allowedKey(cursor: Cursor, token: Token): string {
  if (!isForbiddenName(token.text)) return token.text;
  throw syntaxError(cursor, `the name ${token.text} is not allowed`, {
    code: 'name_forbidden',
    at: token.start,
  });
}

export function parseExpression(cursor: Cursor): Expression {
  const first = parseSum(cursor);
  const alternatives = [first];
  while (acceptSymbol(cursor, operators.otherwise)) alternatives.push(parseSum(cursor));
  return alternatives.length === 1 ? first : { kind: 'otherwise', alternatives };
}

function parseSum(cursor: Cursor): Expression {
  const sum = parseCalculation(cursor, 'sum', parseProduct);
  // A number takes the minus before it as its sign, so `a -2` has no operator.
  if (cursor.token.kind === 'number' && cursor.token.text.startsWith('-')) throw crowdedMinus(cursor);
  return sum;
}

function parseProduct(cursor: Cursor): Expression {
  return parseCalculation(cursor, 'product', parseAlternative);
}

function parseCalculation(
  cursor: Cursor,
  kind: 'sum' | 'product',
  parseOperandOf: (cursor: Cursor) => Expression,
): Expression {
  const first = parseOperandOf(cursor);
  const rest: { operator: ArithmeticOperator; right: Expression }[] = [];
  for (;;) {
    const operator = arithmeticOperators[kind].find((known) => isSymbol(cursor, known));
    if (operator === undefined) return rest.length === 0 ? first : { kind, first, rest };
    if (operator === '-') requireSpaces(cursor);
    advance(cursor);
    rest.push({ operator, right: parseOperandOf(cursor) });
  }
}

/** Names hold `-`, so the operator needs spaces. */
function requireSpaces(cursor: Cursor): void {
  const { start, end } = cursor.token;
  if (/\S/.test(cursor.text.slice(start - 1, start) + cursor.text.slice(end, end + 1))) {
    throw crowdedMinus(cursor);
  }
}

function crowdedMinus(cursor: Cursor): ExpressionSyntaxError {
  return syntaxError(cursor, '- between two values needs white space on both sides', {
    suggestion: 'write a - b',
  });
}

function parseAlternative(cursor: Cursor): Expression {
  const of = parsePrimary(cursor);
  const calls: FilterCall[] = [];
  while (acceptSymbol(cursor, operators.filter)) calls.push(parseFilter(cursor));
  return calls.length === 0 ? of : { kind: 'filtered', of, filters: calls };
}

function parsePrimary(cursor: Cursor): Expression {
  const value = parseScalar(cursor);
  if (value !== undefined) return { kind: 'literal', value };
  if (cursor.token.kind === 'name') return parsePath(cursor);
  if (isSymbol(cursor, '(')) return parseNested(cursor, parseParenthesised);
  if (isSymbol(cursor, '[')) return parseNested(cursor, parseList);
  if (isSymbol(cursor, '{')) return parseNested(cursor, parseObject);
  throw unexpected(cursor, 'a path, a value or (');
}

/** Undefined, without moving, when the token is not a scalar. */
function parseScalar(cursor: Cursor): Scalar | undefined {
  const { kind, text } = cursor.token;
  if (kind === 'string') return advance(cursor).text;
  if (kind === 'number') return parseNumber(cursor);
  const value = kind === 'name' ? keywords.get(text) : undefined;
  if (value !== undefined) advance(cursor);
  return value;
}

function parseNumber(cursor: Cursor): number {
  const token = advance(cursor);
  if (isKept(token.text)) return Number(token.text);
  const { message, suggestion } = describeLostNumber(token.text);
  throw syntaxError(cursor, message, { at: token.start, suggestion });
}

function parseParenthesised(cursor: Cursor): Expression {
  advance(cursor);
  const inner = parseCondition(cursor);
  if (!acceptSymbol(cursor, ')')) throw unexpected(cursor, 'an operator or )');
  refusePath(cursor, 'a closing parenthesis', 'move the path into the parentheses');
  return inner;
}

function refusePath(cursor: Cursor, after: string, suggestion?: string): void {
  if (!isSymbol(cursor, '.') && !isSymbol(cursor, '[')) return;
  throw syntaxError(cursor, `only an operator or a filter may follow ${after}`, { suggestion });
}

function parseList(cursor: Cursor): Expression {
  const items: Expression[] = [];
  parseEnclosed(cursor, ']', () => items.push(parseExpression(cursor)));
  refusePath(cursor, 'a list');
  return { kind: 'list', items };
}

function parseObject(cursor: Cursor): Expression {
  const entries = new Map<string, Expression>();
  parseEnclosed(cursor, '}', () => {
    const { kind, start } = cursor.token;
    if (kind !== 'string') throw unexpected(cursor, 'a key in quotes: {"key": value}');
    const key = allowedKey(cursor, advance(cursor));
    if (entries.has(key))
      throw syntaxError(cursor, `the key ${key.slice(0, 64)} is written twice`, { at: start });
    if (!acceptSymbol(cursor, ':')) throw unexpected(cursor, ': and a value after the key');
    entries.set(key, parseExpression(cursor));
  });
  refusePath(cursor, 'an object');
  return { kind: 'object', entries: [...entries] };
}

/** Reads parts between commas, from the opening sign to the closing one. */
function parseEnclosed(cursor: Cursor, close: string, parsePart: () => void): void {
  advance(cursor);
  if (acceptSymbol(cursor, close)) return;
  do parsePart();
  while (acceptSymbol(cursor, ','));
  if (!acceptSymbol(cursor, close)) throw unexpected(cursor, `an operator, a comma or ${close}`);
}

export function parseCondition(cursor: Cursor): Expression {
  return parseChain(cursor, 'any', parseConjunction);
}

function parseConjunction(cursor: Cursor): Expression {
  return parseChain(cursor, 'all', parseComparison);
}

function parseChain(
  cursor: Cursor,
  kind: 'all' | 'any',
  parseOperandOf: (cursor: Cursor) => Expression,
): Expression {
  const first = parseOperandOf(cursor);
  const of = [first];
  while (acceptSymbol(cursor, operators[kind])) of.push(parseOperandOf(cursor));
  return of.length === 1 ? first : { kind, of };
}

function parseComparison(cursor: Cursor): Expression {
  const first = parseOperand(cursor);
  const rest: { operator: ComparisonOperator; right: Expression }[] = [];
  for (;;) {
    const operator = comparisonAt(cursor);
    if (operator === undefined) return rest.length === 0 ? first : { kind: 'comparison', first, rest };
    advance(cursor);
    rest.push({ operator, right: parseOperand(cursor) });
  }
}

function comparisonAt({ token }: Cursor): ComparisonOperator | undefined {
  return token.kind === 'symbol' || token.kind === 'name'
    ? comparisonOperators.find((operator) => operator === token.text)
    : undefined;
}

function parseOperand(cursor: Cursor): Expression {
  if (!isSymbol(cursor, operators.not)) return parseExpression(cursor);
  advance(cursor);
  return { kind: 'not', of: parseNested(cursor, parseOperand) };
}

function parseFilter(cursor: Cursor): FilterCall {
  if (cursor.token.kind !== 'name') throw unexpected(cursor, 'the name of a filter after |');
  const token = advance(cursor);
  const { filterNames } = cursor.dialect;
  const name = filterNames.find((known) => known === token.text);
  if (name === undefined) {
    const seen = JSON.stringify(token.text.slice(0, 64));
    throw syntaxError(cursor, `${seen} is no filter; there are ${filterNames.join(', ')}`, {
      code: 'filter_unknown',
      suggestion: createNameSuggester(filterNames)(token.text),
      at: token.start,
    });
  }
  return { name, ...parseArguments(cursor, name) };
}

function parseArguments(cursor: Cursor, filter: AnyFilterName): Omit<FilterCall, 'name'> {
  const { argument: kind } = knownFilters[filter];
  switch (kind) {
    case 'none':
      return { argument: null };
    case 'string':
      return { argument: parseText(cursor, filter) };
    case 'optional':
      return isSymbol(cursor, '(')
        ? { argument: null, values: parseValues(cursor, filter, 1) }
        : { argument: null };
    case 'value':
      return { argument: null, values: parseValues(cursor, filter, 1) };
    case 'values':
      return { argument: null, values: parseValues(cursor, filter, 2) };
    case 'field': {
      const argument = openField(cursor, `a field: ${filter}("name")`);
      closeArguments(cursor, filter);
      return { argument };
    }
    case 'condition':
      return parseFieldCondition(cursor, filter);
  }
}

/** Reads `(` and a name in quotes. */
function openField(cursor: Cursor, example: string): string {
  if (acceptSymbol(cursor, '(') && cursor.token.kind === 'string') return allowedKey(cursor, advance(cursor));
  throw unexpected(cursor, example);
}

function closeArguments(cursor: Cursor, filter: string): void {
  if (!acceptSymbol(cursor, ')')) throw unexpected(cursor, `) after the argument of ${filter}`);
}

function parseValues(cursor: Cursor, filter: string, count: 1 | 2): readonly Expression[] {
  const example = count === 1 ? `${filter}(value)` : `${filter}(value, value)`;
  if (!acceptSymbol(cursor, '(')) throw unexpected(cursor, `an argument: ${example}`);
  const values = [parseNested(cursor, parseExpression)];
  while (values.length < count) {
    if (!acceptSymbol(cursor, ',')) throw unexpected(cursor, `, and another argument: ${example}`);
    values.push(parseNested(cursor, parseExpression));
  }
  closeArguments(cursor, filter);
  return values;
}

/** `where("state" == "done")` */
function parseFieldCondition(cursor: Cursor, filter: string): Omit<FilterCall, 'name'> {
  const example = `${filter}("state" == "done")`;
  const argument = openField(cursor, `a field and a comparison: ${example}`);
  const operator = comparisonAt(cursor);
  if (operator === undefined) throw unexpected(cursor, `a comparison: ${example}`);
  advance(cursor);
  const values = [parseNested(cursor, parseExpression)];
  closeArguments(cursor, filter);
  return { argument, operator, values };
}

function parseText(cursor: Cursor, filter: string): string {
  if (!acceptSymbol(cursor, '(') || cursor.token.kind !== 'string')
    throw unexpected(cursor, `a string argument: ${filter}(", ")`);
  const { text } = advance(cursor);
  closeArguments(cursor, filter);
  return text;
}

/** Reads the `}}` after an expression. The error suggests parentheses when an operator needs them. */
export function parseClose(cursor: Cursor): number {
  const { text } = cursor.token;
  if (
    comparisonAt(cursor) !== undefined ||
    isSymbol(cursor, operators.all) ||
    isSymbol(cursor, operators.any)
  ) {
    throw syntaxError(cursor, `${text} needs parentheses`, { suggestion: `write {{ ( a ${text} b ) }}` });
  }
  return parseEnd(cursor);
}

/** Reads the `}}`, or the end of a text without one. @returns where it ends */
export function parseEnd(cursor: Cursor): number {
  const { kind, start } = cursor.token;
  if (cursor.isBare ? kind === 'end' : isAtClose(cursor))
    return cursor.isBare ? start : start + delimiters.close.length;
  throw unexpected(
    cursor,
    cursor.isBare ? 'an operator or a filter' : `${delimiters.close}, an operator or a filter`,
  );
}
