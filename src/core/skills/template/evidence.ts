/**
 * Whether one correction is evidence enough for a rule. A template without a guard rewrites values that nobody has seen,
 * so what looks like a rule by coincidence must not become one: 44101 to 44100 is even, and also the nearest standard
 * rate; a 2 in the error is the new value, and also the number of a segment.
 */
import type { Json } from '../../../contracts/primitives.ts';

const evenness = /\b(?:even|odd|divisible by (?:2|two)|multiples? of (?:2|two))\b/i;

/** Characters from which on a value is hardly there by chance. */
const telling = 3;
const announcement =
  /(?:[<>]=?|\b(?:maximum|minimum|max|min|limit|bound|most|least|up to|below|above|exceeds?|must be|expected|required|use|instead|successor|last|first|supported|mean))(?: (?:is|are|of|value|or|than|to|one))*[ :="'`]*$/i;

/** That it fell on an even number is the point, says the error. */
export function wantsEven(error: string): boolean {
  return evenness.test(error);
}

function toNumber(value: Json | undefined): number {
  return typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN;
}

/** Rounding would have given another number. */
export function dropsFraction(before: Json | undefined, after: Json): boolean {
  return Math.abs(toNumber(before) - toNumber(after)) > 0.5;
}

/** @param text of a group of the error's pattern: long enough, or named as what is to be written */
export function isTelling(text: string, error: string): boolean {
  if (text.length >= telling) return true;
  for (let at = error.indexOf(text); at >= 0; at = error.indexOf(text, at + 1)) {
    if (announcement.test(error.slice(Math.max(0, at - 60), at))) return true;
  }
  return false;
}
