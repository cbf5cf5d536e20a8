/**
 * Splits the inside of `{{ }}` into tokens. Longest match first, so `||` is never two filters.
 * Double-quoted strings take JSON's escapes; single-quoted ones are literal, for use inside JSON.
 */
type TokenKind = 'name' | 'number' | 'string' | 'symbol' | 'close' | 'end' | 'bad';

export interface Token {
  readonly kind: TokenKind;
  /** As written; for `string` the value, for `bad` the reason. */
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

const space = /[ \t\r\n]*/y;
const name = /[A-Za-z_][A-Za-z0-9_-]*/y;
const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const symbol = /\?\?|==|!=|<=|>=|&&|\|\||[.[\]*()|<>!]/y;

const matchAt = (pattern: RegExp, text: string, at: number): string | undefined => {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
};

const bad = (reason: string, start: number): Token => ({ kind: 'bad', text: reason, start, end: start });

const readSingleQuoted = (text: string, start: number): Token => {
  const end = text.indexOf("'", start + 1);
  if (end < 0) return bad("the string is never closed with '", start);
  return { kind: 'string', text: text.slice(start + 1, end), start, end: end + 1 };
};

const readDoubleQuoted = (text: string, start: number): Token => {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  if (at >= text.length) return bad('the string is never closed with "', start);
  const value = parseJsonString(text.slice(start, at + 1));
  if (value === null)
    return bad('the string holds an escape or control character that JSON does not allow', start);
  return { kind: 'string', text: value, start, end: at + 1 };
};

const parseJsonString = (quoted: string): string | null => {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return null;
  }
};

const strayHints: Readonly<Record<string, string>> = {
  '=': 'write == to compare',
  '&': 'write && for "and"',
  '?': 'write ?? for a default',
};

const readStray = (text: string, start: number): Token => {
  const character = String.fromCodePoint(text.codePointAt(start) ?? 0);
  const hint = strayHints[character];
  return bad(`unexpected ${JSON.stringify(character)}${hint === undefined ? '' : `; ${hint}`}`, start);
};

/** The token at or after `at`. Never throws: what cannot be read is a `bad` token with its reason. */
export const readToken = (text: string, at: number): Token => {
  const start = at + (matchAt(space, text, at)?.length ?? 0);
  if (start >= text.length) return { kind: 'end', text: '', start, end: start };
  const first = text[start];
  if (first === '"') return readDoubleQuoted(text, start);
  if (first === "'") return readSingleQuoted(text, start);
  if (text.startsWith('}}', start)) return { kind: 'close', text: '}}', start, end: start + 2 };
  for (const [kind, pattern] of [
    ['name', name],
    ['number', number],
    ['symbol', symbol],
  ] as const) {
    const found = matchAt(pattern, text, start);
    if (found !== undefined) return { kind, text: found, start, end: start + found.length };
  }
  return readStray(text, start);
};
