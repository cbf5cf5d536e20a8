/**
 * Strict JSON (RFC 8259) with positions. `JSON.parse` reports neither positions of values nor duplicate keys, and its
 * error positions are not part of any standard.
 */
import type { Json } from '../../contracts/primitives.ts';
import { readLostScalar } from '../../json/numbers.ts';
import { extendPointer } from '../../json/values.ts';
import {
  type SourceEntry,
  type SourceNode,
  type SourceProblem,
  type SourceReading,
  sourceLimits,
} from './source-node.ts';

interface JsonCursor {
  readonly text: string;
  at: number;
  values: number;
  readonly problems: SourceProblem[];
}

class JsonFault extends Error {
  readonly problem: SourceProblem;
  constructor(problem: SourceProblem) {
    super(problem.message);
    this.problem = problem;
  }
}

export function readJson(text: string): SourceReading {
  const cursor: JsonCursor = { text, at: 0, values: 0, problems: [] };
  try {
    const root = readValue(cursor, '', 0);
    skipSpace(cursor);
    if (cursor.at < text.length) throw syntaxFault(cursor, '', 'the end of the text');
    return { root, problems: cursor.problems, warnings: [] };
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    return { root: null, problems: [...cursor.problems, error.problem], warnings: [] };
  }
}

function syntaxFault(cursor: JsonCursor, pointer: string, expected: string): JsonFault {
  const message = `expected ${expected}, found ${seenAt(cursor)}`;
  return new JsonFault({ code: 'json_syntax', pointer, at: cursor.at, message });
}

function seenAt({ text, at }: JsonCursor): string {
  return at >= text.length
    ? 'the end of the text'
    : JSON.stringify(String.fromCodePoint(text.codePointAt(at) ?? 0));
}

function skipSpace(cursor: JsonCursor): void {
  while (' \t\r\n'.includes(cursor.text[cursor.at] ?? 'x')) cursor.at++;
}

function accept(cursor: JsonCursor, character: string): boolean {
  skipSpace(cursor);
  if (cursor.text[cursor.at] !== character) return false;
  cursor.at++;
  return true;
}

function readValue(cursor: JsonCursor, pointer: string, depth: number): SourceNode {
  skipSpace(cursor);
  if (depth > sourceLimits.depth) {
    const message = `the text nests deeper than ${sourceLimits.depth}`;
    throw new JsonFault({ code: 'too_deep', pointer, at: cursor.at, message });
  }
  if (++cursor.values > sourceLimits.values) {
    const message = `the text holds more than ${sourceLimits.values} values`;
    throw new JsonFault({ code: 'too_many_values', pointer, at: cursor.at, message });
  }
  const start = cursor.at;
  if (accept(cursor, '{')) return readObject(cursor, { pointer, depth, start });
  if (accept(cursor, '[')) return readList(cursor, { pointer, depth, start });
  const value = cursor.text[start] === '"' ? readString(cursor, pointer) : readScalar(cursor, pointer);
  return { value, start, end: cursor.at };
}

interface Container {
  readonly pointer: string;
  readonly depth: number;
  readonly start: number;
}

function readObject(cursor: JsonCursor, { pointer, depth, start }: Container): SourceNode {
  const entries = new Map<string, SourceEntry>();
  if (!accept(cursor, '}')) {
    do {
      skipSpace(cursor);
      const keyStart = cursor.at;
      if (cursor.text[keyStart] !== '"') throw syntaxFault(cursor, pointer, 'a key in double quotes');
      const key = readString(cursor, pointer);
      const below = extendPointer(pointer, key);
      if (!accept(cursor, ':')) throw syntaxFault(cursor, below, ': after the key');
      if (entries.has(key) && cursor.problems.length < sourceLimits.problems) {
        const message = `the key ${JSON.stringify(key)} is written twice`;
        cursor.problems.push({ code: 'key_duplicate', pointer: below, at: keyStart, message });
      }
      entries.set(key, { keyStart, node: readValue(cursor, below, depth + 1) });
    } while (accept(cursor, ','));
    if (!accept(cursor, '}')) throw syntaxFault(cursor, pointer, ', or }');
  }
  const value = Object.fromEntries([...entries].map(([key, { node }]) => [key, node.value]));
  return { value, start, end: cursor.at, entries };
}

function readList(cursor: JsonCursor, { pointer, depth, start }: Container): SourceNode {
  const items: SourceNode[] = [];
  if (!accept(cursor, ']')) {
    do items.push(readValue(cursor, `${pointer}/${items.length}`, depth + 1));
    while (accept(cursor, ','));
    if (!accept(cursor, ']')) throw syntaxFault(cursor, pointer, ', or ]');
  }
  return { value: items.map(({ value }) => value), start, end: cursor.at, items };
}

function readString(cursor: JsonCursor, pointer: string): string {
  const { text, at: start } = cursor;
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  try {
    const value = JSON.parse(text.slice(start, at + 1)) as string;
    cursor.at = at + 1;
    return value;
  } catch {
    const message = 'the string is not closed, or holds a line break, control character or wrong escape';
    throw new JsonFault({ code: 'json_syntax', pointer, at: start, message });
  }
}

const scalar = /(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![A-Za-z0-9_.+-])/y;

function readScalar(cursor: JsonCursor, pointer: string): Json {
  scalar.lastIndex = cursor.at;
  const written = scalar.exec(cursor.text)?.[0];
  if (written === undefined) throw syntaxFault(cursor, pointer, 'a JSON value');
  const value = JSON.parse(written) as Json;
  const lost = readLostScalar(value, written);
  if (lost !== null && cursor.problems.length < sourceLimits.problems) {
    cursor.problems.push({ code: 'number_inexact', pointer, at: cursor.at, ...lost });
  }
  cursor.at += written.length;
  return lost === null ? value : 0;
}
