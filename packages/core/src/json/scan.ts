/**
 * Scans a JSON text in one linear pass before it is parsed, so that no untrusted text can exhaust the parser, the
 * validator or the database. It checks depth, number of keys and of values, length of strings, names that reach a
 * prototype, and characters that Postgres cannot store. It does not check the grammar; `JSON.parse` does that
 * afterwards.
 */
import type { ErrorCode } from '../contracts/errors.ts';
import { isForbiddenName } from './values.ts';

export interface JsonLimits {
  readonly depth: number;
  /** Keys of all objects together. */
  readonly keys: number;
  /** All values: objects, lists and their contents. */
  readonly values: number;
  /** Bytes of one string as written, including escapes. */
  readonly stringBytes: number;
  /** Skips the checks of string contents: names, and characters that cannot be stored. */
  readonly anyText?: boolean;
  /** Skips the check of characters: the text may be passed on, and is checked by `findUnstorable` where it is not. */
  readonly anyCharacters?: boolean;
}

export interface JsonTextFault {
  readonly code: Extract<ErrorCode, 'json_too_deep' | 'proto_key' | 'malformed_json'>;
  /** A predicate about the whole text: the value that was seen and the allowed ones. */
  readonly message: string;
}

/** Stops the scan at the fault. */
class FaultFound extends Error {
  readonly fault: JsonTextFault;

  constructor(code: JsonTextFault['code'], message: string) {
    super(message);
    this.fault = { code, message };
  }
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

/** The first fault; null when there is none. */
export function findJsonFault(bytes: Buffer, limits: JsonLimits): JsonTextFault | null {
  try {
    scanJson(bytes, limits);
    return null;
  } catch (error) {
    if (error instanceof FaultFound) return error.fault;
    throw error;
  }
}

/** An escape of NUL, or of a surrogate. */
const doubtful = /\\u(?:0000|[dD][89a-fA-F])/;

/** Characters that cannot be stored. @param text of the bytes */
export function findUnstorable(bytes: Buffer, text: string): JsonTextFault | null {
  if (!doubtful.test(text)) return null;
  const most = Number.POSITIVE_INFINITY;
  return findJsonFault(bytes, { depth: most, keys: most, values: most, stringBytes: most });
}

function scanJson(bytes: Buffer, limits: JsonLimits): void {
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
    throw new FaultFound(
      'json_too_deep',
      `nests deeper than the ${scan.limits.depth} levels that are allowed`,
    );
  if (!isClosing(scan.bytes[skipSpace(scan.bytes, scan.at + 1)])) countValue(scan);
}

/** Each comma adds a value, and each non-empty container has a first one. */
function countValue(scan: Scan): void {
  scan.values++;
  if (scan.values > scan.limits.values)
    throw new FaultFound(
      'json_too_deep',
      `holds more than the ${scan.limits.values} values that are allowed`,
    );
}

function scanString(scan: Scan): void {
  const { bytes, limits } = scan;
  const start = scan.at + 1;
  const { end, hasEscapes } = findEnd(bytes, start, limits.anyText === true || limits.anyCharacters === true);
  if (end - start > limits.stringBytes)
    throw new FaultFound(
      'json_too_deep',
      `holds a string of ${end - start} bytes; allowed are ${limits.stringBytes}`,
    );
  scan.at = end + 1;
  if (!isKey(bytes, scan.at)) return;
  countKey(scan);
  if (limits.anyText !== true) checkName(bytes.toString('utf8', start, end), hasEscapes);
}

function findEnd(bytes: Buffer, start: number, isAny: boolean): { end: number; hasEscapes: boolean } {
  let at = start;
  let hasEscapes = false;
  while (at < bytes.length && bytes[at] !== quote) {
    if (bytes[at] !== backslash) {
      at++;
      continue;
    }
    hasEscapes = true;
    at += !isAny && bytes[at + 1] === letterU ? checkUnit(bytes, at) : 2;
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

/** @returns the length in bytes of the escape at `at`: 12 for a surrogate pair */
function checkUnit(bytes: Buffer, at: number): number {
  const unit = unitAt(bytes, at);
  if (unit === 0)
    throw new FaultFound('malformed_json', 'has a string that holds NUL (\\u0000), which cannot be stored');
  const isPair = isHigh(unit) && isLow(unitAt(bytes, at + 6));
  if (!isPair && (isHigh(unit) || isLow(unit)))
    throw new FaultFound('malformed_json', 'has a string that holds half of a surrogate pair');
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

function countKey(scan: Scan): void {
  scan.keys++;
  if (scan.keys > scan.limits.keys)
    throw new FaultFound('json_too_deep', `holds more than the ${scan.limits.keys} keys that are allowed`);
}

function checkName(written: string, hasEscapes: boolean): void {
  const name = hasEscapes ? unescapeName(written) : written;
  if (isForbiddenName(name)) throw new FaultFound('proto_key', `has a key named ${name}`);
}

function unescapeName(written: string): string {
  try {
    return String(JSON.parse(`"${written}"`));
  } catch {
    throw new FaultFound('malformed_json', 'has a key with a wrong escape');
  }
}
