/** Numbers of texts by users that a double does not keep: where each is, and what to write instead. */
import { ExactNumber, isKept, lostNumbers, skipString } from '../contracts/exact-json.ts';
import { extendPointer } from './values.ts';

interface NumberFault {
  readonly message: string;
  readonly suggestion: string;
}

const mostShown = 60;

/** @param written a number that is not kept */
export function describeLostNumber(written: string): NumberFault {
  const shown = written.length > mostShown ? `${written.slice(0, mostShown)}…` : written;
  const value = Number(written);
  const message = Number.isFinite(value)
    ? `the number ${shown} cannot be kept: it would become ${String(value)}`
    : `the number ${shown} is too large to be kept: the largest is ${Number.MAX_VALUE}`;
  return { message, suggestion: `write it as text: "${shown}"` };
}

/** The number that a scalar of YAML or JSON means, if it is not kept; null otherwise. */
export function readLostScalar(value: unknown, written: string | undefined): NumberFault | null {
  if (typeof value !== 'number' || Number.isNaN(value) || written === undefined) return null;
  const isOfBits = /^0[ox]/.test(written); // YAML's octal and hexadecimal numbers
  const isSame = isOfBits ? BigInt(written) === BigInt(value) : isKept(written);
  return isSame || /inf$/i.test(written) ? null : describeLostNumber(written);
}

interface PlacedNumber extends NumberFault {
  readonly pointer: string;
  /** Line and column are counted from 1; columns in UTF-16 units. */
  readonly line: number;
  readonly column: number;
}

/** A container that is open at a place of a text, and the member that is being read. */
interface OpenContainer {
  readonly isList: boolean;
  segment: string | number;
}

/** Follows the containers of a valid JSON text. @returns gives the pointer at a later place each time */
function createPointerReader(text: string): (at: number) => string {
  const open: OpenContainer[] = [];
  const sign = /["{}[\],]/g;
  const read = (): void => {
    const start = sign.lastIndex - 1;
    const inside = open.at(-1);
    switch (text[start]) {
      case '"': {
        sign.lastIndex = skipString(text, start + 1);
        const written = text.slice(start, sign.lastIndex);
        if (inside?.isList === false && isBeforeColon(text, sign.lastIndex))
          inside.segment = JSON.parse(written);
        return;
      }
      case ',':
        if (inside?.isList === true) inside.segment = Number(inside.segment) + 1;
        return;
      case '{':
      case '[':
        open.push({ isList: text[start] === '[', segment: 0 });
        return;
      default:
        open.pop();
    }
  };
  return (at) => {
    for (let next = sign.exec(text); next !== null && next.index < at; next = sign.exec(text)) read();
    sign.lastIndex = at;
    return extendPointer('', ...open.map(({ segment }) => segment));
  };
}

function isBeforeColon(text: string, from: number): boolean {
  let at = from;
  while (' \t\r\n'.includes(text[at] ?? 'x')) at++;
  return text[at] === ':';
}

const mostFaults = 20;

/** The first numbers of a valid JSON text that are not kept. */
export function findLostNumbers(text: string): readonly PlacedNumber[] {
  const faults: PlacedNumber[] = [];
  const pointerAt = createPointerReader(text);
  let line = 1;
  let lineStart = 0;
  for (const { at, written } of lostNumbers(text)) {
    for (let end = text.indexOf('\n', lineStart); end >= 0 && end < at; end = text.indexOf('\n', lineStart)) {
      lineStart = end + 1;
      line++;
    }
    faults.push({ pointer: pointerAt(at), line, column: at - lineStart + 1, ...describeLostNumber(written) });
    if (faults.length === mostFaults) break;
  }
  return faults;
}

/** The JSON text with a string in place of each number that is not kept: for a reader of its values without exact numbers. */
export function quoteLostNumbers(text: string): string {
  const parts: string[] = [];
  let end = 0;
  for (const { at, written } of lostNumbers(text)) {
    parts.push(text.slice(end, at), `"${written}"`);
    end = at + written.length;
  }
  return parts.join('') + text.slice(end);
}

/**
 * The value with the nearest double for every `ExactNumber`: for a check against a schema, and where only the size or
 * the form counts.
 */
export function toNearest<Value>(value: Value): Value {
  return (holdsExact(value) ? replaceExact(value) : value) as Value;
}

/** Without recursion: a value may be nested more deeply than the stack allows. */
export function holdsExact(value: unknown): boolean {
  const open: unknown[] = [value];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (one instanceof ExactNumber) return true;
    if (typeof one !== 'object' || one === null) continue;
    for (const inner of Array.isArray(one) ? one : Object.values(one)) {
      if (typeof inner === 'object' && inner !== null) open.push(inner);
    }
  }
  return false;
}

function replaceExact(value: unknown): unknown {
  if (value instanceof ExactNumber) return value.nearest;
  if (Array.isArray(value)) return value.map(replaceExact);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, replaceExact(inner)]));
}
