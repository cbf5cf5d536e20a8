/**
 * One function per rule of the grammar (grammar.ts). Every function ends on the first token that is not its own; none goes
 * back, so the time is linear in the length of the text.
 */

import type { Scalar } from '../json-type.ts';
import { createNameSuggester } from '../nearest-name.ts';
import type { Expression, FilterCall } from './ast.ts';
import {
  acceptSymbol,
  advance,
  type Cursor,
  isSymbol,
  parseNested,
  syntaxError,
  unexpected,
} from './cursor.ts';
import { knownFilters } from './dialect.ts';
import { parsePath } from './parse-path.ts';
import { type ComparisonOperator, comparisonOperators, delimiters, keywords, operators } from './symbols.ts';

export function parseExpression(cursor: Cursor): Expression {
  const alternatives = [parseAlternative(cursor)];
  while (acceptSymbol(cursor, operators.otherwise)) alternatives.push(parseAlternative(cursor));
  const [only] = alternatives;
  return alternatives.length === 1 && only !== undefined ? only : { kind: 'otherwise', alternatives };
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
  throw unexpected(cursor, 'a path, a value or (');
}

/** Undefined, without moving, when none stands here. */
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
  const value = Number(token.text);
  if (Number.isFinite(value)) return value;
  throw syntaxError(cursor, `${token.text.slice(0, 40)} is too large for a number`, { at: token.start });
}

function parseParenthesised(cursor: Cursor): Expression {
  advance(cursor);
  const inner = parseCondition(cursor);
  if (!acceptSymbol(cursor, ')')) throw unexpected(cursor, 'an operator or )');
  if (isSymbol(cursor, '.') || isSymbol(cursor, '[')) {
    throw syntaxError(cursor, 'only an operator or a filter may follow a closing parenthesis', {
      suggestion: 'move the path into the parentheses',
    });
  }
  return inner;
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
  const kind = knownFilters[name].argument;
  return { name, argument: kind === 'none' ? null : parseArgument(cursor, name, kind) };
}

function parseArgument(cursor: Cursor, filter: string, kind: 'string' | 'scalar'): Scalar {
  const opened = acceptSymbol(cursor, '(');
  const accepted = opened && (kind === 'scalar' || cursor.token.kind === 'string');
  const argument = accepted ? parseScalar(cursor) : undefined;
  if (argument === undefined) {
    const example = kind === 'string' ? `a string argument: ${filter}(", ")` : `a value: ${filter}(0)`;
    throw unexpected(cursor, example);
  }
  if (!acceptSymbol(cursor, ')')) throw unexpected(cursor, `) after the argument of ${filter}`);
  return argument;
}

/** The `}}` after an expression; says what to write when an operator stands there that needs parentheses. */
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

/** The `}}`, or the end of a text without one. Answers where it ends. */
export function parseEnd(cursor: Cursor): number {
  if (cursor.token.kind === (cursor.isBare ? 'end' : 'close')) return cursor.token.end;
  throw unexpected(
    cursor,
    cursor.isBare ? 'an operator or a filter' : `${delimiters.close}, an operator or a filter`,
  );
}
