/**
 * Splits the inside of `{{ }}` into tokens. Longest match first, so `||` is never two filters. Double-quoted strings
 * use JSON's escapes; single-quoted ones are literal, for use inside JSON.
 *
 * Also holds the parser's cursor in one string: the current token, and how to advance or fail there.
 */

import type { Dialect } from './filters.ts';
import {
  delimiters,
  type ExpressionErrorCode,
  ExpressionSyntaxError,
  expressionLimits,
  signs,
  tokenPatterns,
} from './language.ts';

type TokenKind = 'name' | 'number' | 'string' | 'symbol' | 'end' | 'bad';

export interface Token {
  readonly kind: TokenKind;
  /** As written; for `string` the value, for `bad` the reason. */
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

const space = /[ \t\r\n]*/y;
const name = new RegExp(tokenPatterns.name, 'y');
const number = new RegExp(tokenPatterns.number, 'y');
const symbol = new RegExp(signs.map((sign) => sign.replace(/[^=]/g, '\\$&')).join('|'), 'y');

const patterns = [
  ['name', name],
  ['number', number],
  ['symbol', symbol],
] as const;

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.test(text) ? text.slice(at, pattern.lastIndex) : undefined;
}

function bad(reason: string, start: number): Token {
  return { kind: 'bad', text: reason, start, end: start };
}

function readSingleQuoted(text: string, start: number): Token {
  const end = text.indexOf("'", start + 1);
  if (end < 0) return bad("the string is never closed with '", start);
  return { kind: 'string', text: text.slice(start + 1, end), start, end: end + 1 };
}

function readDoubleQuoted(text: string, start: number): Token {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  if (at >= text.length) return bad('the string is never closed with "', start);
  const value = parseJsonString(text.slice(start, at + 1));
  if (value === null)
    return bad('the string holds an escape or control character that JSON does not allow', start);
  return { kind: 'string', text: value, start, end: at + 1 };
}

function parseJsonString(quoted: string): string | null {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return null;
  }
}

const strayHints: ReadonlyMap<string, string> = new Map([
  ['=', 'write == to compare'],
  ['&', 'write && for "and"'],
  ['?', 'write ?? for a default'],
  [delimiters.open, 'an expression holds no {{ }}'],
]);

function readStray(text: string, start: number): Token {
  const isOpen = text.startsWith(delimiters.open, start);
  const character = isOpen ? delimiters.open : String.fromCodePoint(text.codePointAt(start) ?? 0);
  const hint = strayHints.get(character);
  return bad(`unexpected ${JSON.stringify(character)}${hint === undefined ? '' : `; ${hint}`}`, start);
}

/** The token at or after `at`. Never throws: unreadable text is a `bad` token with its reason. */
export function readToken(text: string, at: number): Token {
  space.lastIndex = at;
  space.test(text);
  const start = space.lastIndex;
  if (start >= text.length) return { kind: 'end', text: '', start, end: start };
  const first = text[start];
  if (first === '"') return readDoubleQuoted(text, start);
  if (first === "'") return readSingleQuoted(text, start);
  if (text.startsWith(delimiters.open, start)) return readStray(text, start);
  for (const [kind, pattern] of patterns) {
    const found = matchAt(pattern, text, start);
    if (found !== undefined) return { kind, text: found, start, end: start + found.length };
  }
  return readStray(text, start);
}

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

/** Moves to the next token and returns the one before it. */
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

/** Whether `}}` begins here. It is two tokens, because two objects may end in it. */
export function isAtClose({ text, token }: Cursor): boolean {
  return token.kind === 'symbol' && text.startsWith(delimiters.close, token.start);
}

/** An error that names the token found and the one expected. */
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
  const shown = isAtClose(cursor) ? delimiters.close : text.slice(0, 40);
  const seen = kind === 'string' ? 'a string' : JSON.stringify(shown);
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
