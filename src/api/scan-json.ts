/**
 * One linear pass over a JSON text before anything parses it, so that no body can exhaust the parser, the
 * validator or the database: depth, number of keys and of values, length of strings, names that reach a prototype, and characters
 * that Postgres cannot hold. It is no grammar check; `JSON.parse` does that afterwards.
 */
import { isForbiddenName } from '../core/forbidden-names.ts';
import { AppError } from '../errors/app-error.ts';

export interface JsonLimits {
  readonly depth: number;
  /** Keys of all objects together. */
  readonly keys: number;
  /** All of them: objects, lists and what they hold. */
  readonly values: number;
  /** Bytes of one string as written, escapes included. */
  readonly stringBytes: number;
}

interface Scan {
  readonly bytes: Buffer;
  readonly limits: JsonLimits;
  at: number;
  depth: number;
  keys: number;
  values: number;
}

const quote = 0x22;
const colon = 0x3a;
const comma = 0x2c;
const backslash = 0x5c;
const letterU = 0x75;

function isOpening(byte: number | undefined): boolean {
  return byte === 0x7b || byte === 0x5b;
}
function isClosing(byte: number | undefined): boolean {
  return byte === 0x7d || byte === 0x5d;
}
function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** @throws AppError `json_too_deep`, `proto_key` or `malformed_json` */
export function scanJson(bytes: Buffer, limits: JsonLimits): void {
  const scan: Scan = { bytes, limits, at: 0, depth: 0, keys: 0, values: 1 };
  while (scan.at < bytes.length) {
    const byte = bytes[scan.at];
    if (byte === quote) {
      scanString(scan);
      continue;
    }
    if (isOpening(byte)) open(scan);
    else if (isClosing(byte)) scan.depth--;
    else if (byte === comma) countValue(scan);
    scan.at++;
  }
}

function open(scan: Scan): void {
  scan.depth++;
  if (scan.depth > scan.limits.depth)
    throw new AppError('json_too_deep', `the body nests deeper than ${scan.limits.depth}`);
  if (!isClosing(scan.bytes[skipSpace(scan.bytes, scan.at + 1)])) countValue(scan);
}

/** A value comes after each comma, and first in everything that is not empty. */
function countValue(scan: Scan): void {
  scan.values++;
  if (scan.values > scan.limits.values)
    throw new AppError('json_too_deep', `the body holds more than ${scan.limits.values} values`);
}

function scanString(scan: Scan): void {
  const { bytes, limits } = scan;
  const start = scan.at + 1;
  const { end, hasEscapes } = findEnd(bytes, start);
  if (end - start > limits.stringBytes)
    throw new AppError(
      'json_too_deep',
      `a string of ${end - start} bytes; allowed are ${limits.stringBytes}`,
    );
  scan.at = end + 1;
  if (isKey(bytes, scan.at)) checkKey(scan, bytes.toString('utf8', start, end), hasEscapes);
}

function findEnd(bytes: Buffer, start: number): { end: number; hasEscapes: boolean } {
  let at = start;
  let hasEscapes = false;
  while (at < bytes.length && bytes[at] !== quote) {
    if (bytes[at] !== backslash) {
      at++;
      continue;
    }
    hasEscapes = true;
    at += bytes[at + 1] === letterU ? checkUnit(bytes, at) : 2;
  }
  return { end: Math.min(at, bytes.length), hasEscapes };
}

function unitAt(bytes: Buffer, at: number): number {
  return bytes[at] === backslash && bytes[at + 1] === letterU
    ? Number.parseInt(bytes.toString('latin1', at + 2, at + 6), 16)
    : Number.NaN;
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** @returns how many bytes the escape at `at` takes: 12 for a surrogate pair */
function checkUnit(bytes: Buffer, at: number): number {
  const unit = unitAt(bytes, at);
  if (unit === 0)
    throw new AppError('malformed_json', 'a string holds NUL (\\u0000), which cannot be stored');
  const isPair = isHigh(unit) && isLow(unitAt(bytes, at + 6));
  if (!isPair && (isHigh(unit) || isLow(unit)))
    throw new AppError('malformed_json', 'a string holds half of a surrogate pair');
  return isPair ? 12 : 6;
}

function isKey(bytes: Buffer, after: number): boolean {
  return bytes[skipSpace(bytes, after)] === colon;
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (isSpace(bytes[at])) at++;
  return at;
}

function checkKey(scan: Scan, written: string, hasEscapes: boolean): void {
  scan.keys++;
  if (scan.keys > scan.limits.keys)
    throw new AppError('json_too_deep', `the body holds more than ${scan.limits.keys} keys`);
  const name = hasEscapes ? unescapeName(written) : written;
  if (isForbiddenName(name)) throw new AppError('proto_key', `a key is named ${name}`);
}

function unescapeName(written: string): string {
  try {
    return String(JSON.parse(`"${written}"`));
  } catch (cause) {
    throw new AppError('malformed_json', 'a key holds a wrong escape', { cause });
  }
}
