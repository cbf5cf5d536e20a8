/** JSON values: their types, pointers into them, their canonical text, and forbidden key names. */
import { ExactNumber } from '../contracts/exact-json.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';

type JsonType = 'null' | 'boolean' | 'number' | 'string' | 'list' | 'object';

/** A JSON value that contains no other. */
export type Scalar = null | boolean | number | string;

export function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

/**
 * An object whose prototype is null or a root prototype (of any realm: a workflow runs in its own).
 * Instances of classes, dates, maps and functions are not.
 */
export function isPlainObject(value: unknown): value is JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** The JSON type of a value; null when it is not a JSON value. */
export function jsonTypeOf(value: unknown): JsonType | null {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'list';
  if (isPlainObject(value)) return 'object';
  if (typeof value === 'number') return Number.isFinite(value) ? 'number' : null;
  if (value instanceof ExactNumber) return 'number';
  return typeof value === 'string' ? 'string' : typeof value === 'boolean' ? 'boolean' : null;
}

/** JSON Pointer (RFC 6901). */
export function extendPointer(pointer: string, ...segments: readonly (string | number)[]): string {
  return segments.reduce<string>((path, segment) => `${path}/${escapeSegment(segment)}`, pointer);
}

function escapeSegment(segment: string | number): string | number {
  return typeof segment === 'number' || !(segment.includes('~') || segment.includes('/'))
    ? segment
    : segment.replaceAll('~', '~0').replaceAll('/', '~1');
}

type PointedFindings = readonly { readonly pointer: string; readonly message: string }[];

/** One line for each finding about a value. */
export function listFindings(findings: PointedFindings): readonly string[] {
  return [...new Set(findings.map(({ pointer, message }) => `${pointer || '/'} ${message}`))];
}

/** All findings on one line, for texts that are stored and compared. */
export function describeFindings(findings: PointedFindings): string {
  return listFindings(findings).join('; ');
}

/** The first five findings on one line, for a person. */
export function summarizeFindings(findings: PointedFindings): string {
  return shortenLines(listFindings(findings)).join('; ');
}

const mostLines = 5;

/** The first five lines, and how many more there are. */
export function shortenLines(lines: readonly string[]): readonly string[] {
  const more = lines.length - mostLines;
  return more > 0 ? [...lines.slice(0, mostLines), `and ${more} more`] : lines;
}

export function splitPointer(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) =>
      segment.includes('~') ? segment.replaceAll('~1', '/').replaceAll('~0', '~') : segment,
    );
}

/** One text per JSON value, independent of key order: keys sorted by UTF-16 unit, no white space. */
export function canonicalJson(value: Json): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (value instanceof ExactNumber) return value.written;
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const members = Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`);
  return `{${members.join(',')}}`;
}

/** Names that reach an object's prototype in JavaScript: forbidden as keys, ids and path segments. */
const forbiddenNames: ReadonlySet<string> = new Set(['__proto__', 'prototype', 'constructor']);

export function isForbiddenName(name: string): boolean {
  return forbiddenNames.has(name);
}
