/** The parser's place in one string: the current token, and how to move on or fail there. */
import type { Dialect } from './dialect.ts';
import { type ExpressionErrorCode, ExpressionSyntaxError } from './errors.ts';
import { expressionLimits } from './limits.ts';
import { readToken, type Token } from './tokens.ts';

export interface Cursor {
  readonly text: string;
  readonly pointer: string;
  readonly dialect: Dialect;
  /** The expression is the whole text, without {{ }}. */
  readonly isBare: boolean;
  token: Token;
  depth: number;
}

export function openCursor(
  text: string,
  { pointer, dialect, isBare }: Pick<Cursor, 'pointer' | 'dialect' | 'isBare'>,
  at: number,
): Cursor {
  return {
    text,
    pointer,
    dialect,
    isBare,
    token: readToken(text, at),
    depth: 0,
  };
}

/** Moves to the next token and returns the one that was left. */
export function advance(cursor: Cursor): Token {
  const left = cursor.token;
  cursor.token = readToken(cursor.text, left.end);
  return left;
}

export function isSymbol(cursor: Cursor, text: string): boolean {
  return cursor.token.kind === 'symbol' && cursor.token.text === text;
}

export function acceptSymbol(cursor: Cursor, text: string): boolean {
  if (!isSymbol(cursor, text)) return false;
  advance(cursor);
  return true;
}

interface FaultDetails {
  readonly code?: ExpressionErrorCode;
  readonly suggestion?: string | undefined;
  /** Default: the current token. */
  readonly at?: number;
}

export function syntaxError(
  cursor: Cursor,
  message: string,
  details: FaultDetails = {},
): ExpressionSyntaxError {
  return new ExpressionSyntaxError({
    code: details.code ?? 'expression_syntax',
    pointer: cursor.pointer,
    offset: details.at ?? cursor.token.start,
    message,
    suggestion: details.suggestion,
  });
}

/** What stands here instead of what was expected. */
export function unexpected(cursor: Cursor, expected: string): ExpressionSyntaxError {
  const { kind, text } = cursor.token;
  if (kind === 'bad') return syntaxError(cursor, text);
  if (kind === 'end' && cursor.isBare)
    return syntaxError(cursor, `the condition ends where ${expected} was expected`);
  if (kind === 'end') {
    return syntaxError(cursor, `{{ is never closed: expected ${expected}`, {
      suggestion: 'close it with }}',
    });
  }
  const seen = kind === 'string' ? 'a string' : JSON.stringify(text.slice(0, 40));
  return syntaxError(cursor, `expected ${expected}, found ${seen}`);
}

/** Runs a parser one level deeper. */
export function parseNested<Result>(cursor: Cursor, parse: (cursor: Cursor) => Result): Result {
  if (cursor.depth >= expressionLimits.nesting) {
    throw syntaxError(cursor, `the expression nests deeper than ${expressionLimits.nesting}`, {
      code: 'expression_limit',
    });
  }
  cursor.depth++;
  const result = parse(cursor);
  cursor.depth--;
  return result;
}
