/**
 * Filters of texts, numbers and moments. Moments are RFC 3339 in UTC; a number is milliseconds since 1970. There is no
 * clock and no time zone: an expression gives the same value at every evaluation.
 */
import type { Json } from '../contracts/primitives.ts';
import { parseDuration } from '../duration.ts';
import { parseJson } from '../json/text.ts';
import {
  describeIn,
  type ExpressionFilter,
  evaluationError,
  type FilterInput,
  found,
  type Outcome,
  refuseValue,
  spend,
  spendBuilt,
  spendRead,
  spendValues,
} from './evaluation.ts';
import { charges } from './meter.ts';

function readText(input: FilterInput, filter: string): string {
  if (typeof input.value !== 'string') throw refuseValue(input, `${filter} takes a string`);
  spendRead(input.evaluation, input.value.length);
  return input.value;
}

/** @param change makes a text that is up to three times as long */
function textOf(filter: string, change: (text: string) => string) {
  return (input: FilterInput): Outcome => {
    const text = readText(input, filter);
    spend(input.evaluation, Math.ceil(text.length / charges.charactersEscaped));
    return found(change(text));
  };
}

function readArgument({ evaluation, values }: FilterInput, place: number, rule: string): string {
  const value: Json = values[place] ?? null;
  if (typeof value === 'string') return value;
  throw evaluationError(evaluation, `${rule}, not ${describeIn(evaluation, value)}`);
}

/** The parts of a text between occurrences of another. The engine's search takes the product of both at worst. */
function partsOf(input: FilterInput, filter: string, wanted: string): readonly string[] {
  const text = readText(input, filter);
  if (wanted === '')
    throw evaluationError(input.evaluation, `${filter} searches for a text that is not empty`);
  spend(
    input.evaluation,
    Math.ceil((text.length / charges.charactersSearched) * Math.ceil(wanted.length / 32)),
  );
  const parts = text.split(wanted);
  spendValues(input.evaluation, parts.length);
  return parts;
}

function split(input: FilterInput): Outcome {
  return found(partsOf(input, 'split', readArgument(input, 0, 'split takes a string as separator')));
}

function replace(input: FilterInput): Outcome {
  const rule = 'replace takes two strings';
  const [wanted, other] = [readArgument(input, 0, rule), readArgument(input, 1, rule)];
  const parts = partsOf(input, 'replace', wanted);
  spendBuilt(
    input.evaluation,
    parts.reduce((sum, { length }) => sum + length + other.length, 0),
  );
  return found(parts.join(other));
}

/** At least as many values as the text has, by the signs before them. */
function countValues(text: string): number {
  let count = 1;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 0x2c || unit === 0x3a || unit === 0x5b || unit === 0x7b) count++; // , : [ {
  }
  return count;
}

function readJsonText(input: FilterInput): Outcome {
  const text = readText(input, 'parse_json');
  spendBuilt(input.evaluation, text.length);
  spend(input.evaluation, charges.conversion + countValues(text) * charges.textValue);
  const value = parseJson(text);
  if (value !== undefined) return found(value as Json);
  throw evaluationError(input.evaluation, 'parse_json takes the text of a JSON value');
}

function readNumber(input: FilterInput, filter: string): number {
  spend(input.evaluation, charges.part);
  if (typeof input.value !== 'number')
    throw refuseValue(input, `${filter} takes a number`, 'a text is | number');
  return input.value;
}

function numberOf(filter: string, change: (value: number) => number) {
  return (input: FilterInput): Outcome => found(change(readNumber(input, filter)) + 0); // never -0
}

const mostDigits = 15;

/** Halves are rounded away from zero, as written in decimal: 1.005 with two digits is 1.01. */
function roundTo(value: number, digits: number): number {
  const [mantissa = '0', exponent = '0'] = String(Math.abs(value)).split('e');
  const shifted = Math.round(Number(`${mantissa}e${Number(exponent) + digits}`));
  const [whole = '0', power = '0'] = String(shifted).split('e');
  const rounded = Number(`${whole}e${Number(power) - digits}`);
  return Number.isFinite(rounded) ? Math.sign(value) * rounded + 0 : value;
}

function round(input: FilterInput): Outcome {
  const value = readNumber(input, 'round');
  spend(input.evaluation, charges.conversion);
  const [digits = 0] = input.values;
  if (typeof digits === 'number' && Number.isInteger(digits) && digits >= 0 && digits <= mostDigits)
    return found(roundTo(value, digits));
  throw evaluationError(
    input.evaluation,
    `round takes 0 to ${mostDigits} digits, not ${describeIn(input.evaluation, digits)}`,
  );
}

// Moments.

const moment =
  /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?([Zz]|[+-]\d{2}:\d{2}))?$/;

function readOffset(text: string): number {
  if (/^z$/i.test(text)) return 0;
  const [hours = 0, minutes = 0] = text.slice(1).split(':').map(Number);
  return (text.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}

/** @returns undefined for a text that is no moment */
function parseMoment(text: string): number | undefined {
  const [found, year, month, day, hour = '0', minute = '0', second = '0', fraction = '', zone = 'Z'] =
    moment.exec(text) ?? [];
  if (found === undefined) return undefined;
  const ms = Math.floor(Number(`0.${fraction || '0'}`) * 1_000);
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  date.setUTCHours(Number(hour), Number(minute), Number(second), ms);
  const isReal =
    date.getUTCDate() === Number(day) &&
    date.getUTCMonth() === Number(month) - 1 &&
    date.getUTCHours() === Number(hour) &&
    date.getUTCMinutes() === Number(minute) &&
    date.getUTCSeconds() === Number(second);
  return isReal ? date.getTime() - readOffset(zone) : undefined;
}

/** Years outside of these have no form on the wire. */
function toDate(input: FilterInput, ms: number): Date {
  const date = new Date(Math.trunc(ms));
  const year = date.getUTCFullYear();
  if (year >= 1 && year <= 9_999) return date;
  throw evaluationError(input.evaluation, 'the moment is not in the years 0001 to 9999');
}

function readMoment(input: FilterInput, filter: string): Date {
  const { value, evaluation } = input;
  spend(evaluation, charges.conversion);
  if (typeof value === 'number') return toDate(input, value);
  const rule = `${filter} takes a moment such as "2026-01-31T08:00:00Z" or "2026-01-31", or milliseconds since 1970`;
  if (typeof value !== 'string') throw refuseValue(input, rule);
  const ms = parseMoment(value);
  if (ms === undefined) throw evaluationError(evaluation, `${rule}, not another text`);
  return toDate(input, ms);
}

const dateFields: Readonly<Record<string, (date: Date) => string>> = {
  YYYY: (date) => String(date.getUTCFullYear()).padStart(4, '0'),
  MM: (date) => String(date.getUTCMonth() + 1).padStart(2, '0'),
  DD: (date) => String(date.getUTCDate()).padStart(2, '0'),
  HH: (date) => String(date.getUTCHours()).padStart(2, '0'),
  mm: (date) => String(date.getUTCMinutes()).padStart(2, '0'),
  ss: (date) => String(date.getUTCSeconds()).padStart(2, '0'),
  SSS: (date) => String(date.getUTCMilliseconds()).padStart(3, '0'),
};

function formatDate(input: FilterInput): Outcome {
  const date = readMoment(input, 'format_date');
  const pattern = typeof input.argument === 'string' ? input.argument : '';
  spend(input.evaluation, pattern.length * charges.part);
  return found(pattern.replace(/YYYY|MM|DD|HH|mm|ss|SSS/g, (field) => dateFields[field]?.(date) ?? field));
}

function addDuration(input: FilterInput): Outcome {
  const date = readMoment(input, 'add_duration');
  const text = readArgument(input, 0, 'add_duration takes a duration such as "1d" or "-30m"');
  spend(input.evaluation, charges.conversion + text.length * charges.part);
  const isBack = text.startsWith('-');
  try {
    const ms = parseDuration(isBack ? text.slice(1) : text);
    return found(toDate(input, date.getTime() + (isBack ? -ms : ms)).toISOString());
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw evaluationError(input.evaluation, 'add_duration takes a duration such as "1d" or "-30m"');
  }
}

export const textFilters = {
  lower: {
    argument: 'none',
    summary: 'a text in lower case',
    apply: textOf('lower', (text) => text.toLowerCase()),
  },
  upper: {
    argument: 'none',
    summary: 'a text in upper case',
    apply: textOf('upper', (text) => text.toUpperCase()),
  },
  trim: {
    argument: 'none',
    summary: 'a text without white space around it',
    apply: textOf('trim', (text) => text.trim()),
  },
  split: { argument: 'value', summary: 'the parts of a text between separators', apply: split },
  replace: {
    argument: 'values',
    summary: 'a text with every occurrence of one text replaced by another',
    apply: replace,
  },
  parse_json: { argument: 'none', summary: 'the value of a JSON text', apply: readJsonText },
  round: {
    argument: 'optional',
    summary: 'a number rounded to so many digits after the point; without an argument, to a whole number',
    apply: round,
  },
  floor: {
    argument: 'none',
    summary: 'the whole number at or below a number',
    apply: numberOf('floor', Math.floor),
  },
  ceil: {
    argument: 'none',
    summary: 'the whole number at or above a number',
    apply: numberOf('ceil', Math.ceil),
  },
  abs: { argument: 'none', summary: 'a number without its sign', apply: numberOf('abs', Math.abs) },
  timestamp: {
    argument: 'none',
    summary: 'a moment as milliseconds since 1970',
    apply: (input: FilterInput): Outcome => found(readMoment(input, 'timestamp').getTime()),
  },
  format_date: {
    argument: 'string',
    summary: 'a moment in UTC, by the fields YYYY, MM, DD, HH, mm, ss and SSS',
    apply: formatDate,
  },
  add_duration: {
    argument: 'value',
    summary: 'a moment that much later, or earlier with a minus',
    apply: addDuration,
  },
} as const satisfies Record<string, ExpressionFilter>;
