/**
 * Other readings of a text: a number, with its thousands, multiple or unit; a truth; a date in another order. A reading
 * is certain where people write nothing else with these letters. "1,500" may be 1500 or 1.5, and "10s" is 10 only for a
 * key that counts seconds, so these are likely at most.
 */
import type { Json } from '../../contracts/primitives.ts';
import type { Certainty } from './candidate.ts';
import { convert, isSelfEvident, unitNamed, unitOf } from './units.ts';

export interface TextReading {
  readonly value: Json;
  readonly evidence: Certainty;
  readonly reason: string;
}

/** What the key says of the numbers that it takes. */
export interface KeyHint {
  readonly key: string;
  readonly descriptions: readonly string[];
}

const longestScalar = 64;
const jsonNumber = /^[+-]?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
/** A point that may separate thousands. */
const doubtfulPoint = /^[+-]?[1-9]\d{0,2}\.\d{3}$/;
const grouped = /^[+-]?\d{1,3}([ _]\d{3})+(\.\d+)?$/;
const manyCommas = /^[+-]?\d{1,3}(,\d{3}){2,}(\.\d+)?$/;
const oneComma = /^[+-]?\d+,\d+$/;
const withSuffix = /^([+-]?\d+(?:\.\d+)?) ?(\p{L}+|%)$/u;
const multiples: Readonly<Record<string, number>> = { k: 1e3, K: 1e3, M: 1e6, G: 1e9 };

function reading(value: number, evidence: Certainty, reason: string): TextReading[] {
  const isSafe = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  return isSafe ? [{ value: value + 0, evidence, reason }] : []; // avoids the -0 of "-0", which JSON writes as 0
}

/** The numbers that a text may mean, the most likely first. */
export function readNumbers(text: string, hint: KeyHint): readonly TextReading[] {
  const digits = text.length > longestScalar ? '' : text.trim();
  if (jsonNumber.test(digits)) return readPlain(digits);
  const bare = digits.replace(/[ _,]/g, '');
  if (grouped.test(digits) || manyCommas.test(digits)) {
    return reading(Number(bare), 'certain', 'its digits are only grouped');
  }
  if (oneComma.test(digits)) {
    const thousands = /,\d{3}$/.test(digits)
      ? reading(Number(bare), 'likely', 'a comma may group digits')
      : [];
    return [...thousands, ...reading(Number(digits.replace(',', '.')), 'likely', 'a comma may be a point')];
  }
  const [, number, suffix] = withSuffix.exec(digits) ?? [];
  return number === undefined || suffix === undefined ? [] : readWithUnit(Number(number), suffix, hint);
}

function readPlain(digits: string): readonly TextReading[] {
  const reason = 'the schema wants a number there';
  if (!doubtfulPoint.test(digits)) return reading(Number(digits), 'certain', reason);
  const thousands = reading(Number(digits.replace('.', '')), 'likely', 'a point may group digits');
  return [...reading(Number(digits), 'likely', reason), ...thousands];
}

function readWithUnit(number: number, suffix: string, hint: KeyHint): readonly TextReading[] {
  const keyUnit = unitOf(hint.key, hint.descriptions);
  const multiple = multiples[suffix];
  if (multiple !== undefined) {
    const evidence = keyUnit === undefined || keyUnit.dimension === 'frequency' ? 'certain' : 'likely';
    return reading(
      Number((number * multiple).toPrecision(12)),
      evidence,
      `${suffix} multiplies by ${multiple}`,
    );
  }
  const unit = unitNamed(suffix);
  if (unit === undefined) return [];
  if (keyUnit !== undefined) {
    const converted = convert(number, unit, keyUnit);
    const reason = `the unit of ${hint.key} is known`;
    return converted === undefined ? [] : reading(converted, 'certain', reason);
  }
  const base = convert(number, unit, { ...unit, size: 1 }) ?? number;
  if (isSelfEvident(unit) || unit.dimension === 'frequency') {
    return reading(base, 'certain', `the unit ${suffix} goes without saying`);
  }
  const reason = `the key may count in ${suffix}`;
  const seconds = unit.dimension === 'time' ? [number * (unit.size / 1_000)] : [];
  return [number, base, ...seconds]
    .filter((value, at, all) => all.indexOf(value) === at)
    .flatMap((value) =>
      reading(value, 'likely', value === number ? reason : 'the key may count in another unit'),
    );
}

const truths: Readonly<Record<string, readonly [boolean, Certainty]>> = {
  true: [true, 'certain'],
  false: [false, 'certain'],
  yes: [true, 'certain'],
  no: [false, 'certain'],
  on: [true, 'certain'],
  off: [false, 'certain'],
  enabled: [true, 'certain'],
  disabled: [false, 'certain'],
  y: [true, 'likely'],
  n: [false, 'likely'],
  '1': [true, 'likely'],
  '0': [false, 'likely'],
};

export function readTruths(value: Json): readonly TextReading[] {
  const word = String(value).length > longestScalar ? '' : String(value).trim().toLowerCase();
  const truth = Object.hasOwn(truths, word) ? truths[word] : undefined;
  if (truth === undefined || (typeof value !== 'string' && typeof value !== 'number')) return [];
  return [{ value: truth[0], evidence: truth[1], reason: 'the schema wants true or false there' }];
}

const longestJson = 10_000;

/** A list or an object that was written as text; a list also by commas. */
export function readContainers(text: string, wantsList: boolean): readonly TextReading[] {
  const parsed = text.length > longestJson || !/^\s*[[{]/.test(text) ? undefined : parseJson(text);
  if (parsed !== undefined) return [{ value: parsed, evidence: 'certain', reason: 'the text is its JSON' }];
  const parts = text.length > longestJson ? [] : text.split(/[,;\n]/).map((part) => part.trim());
  return wantsList && parts.length > 1 && parts.every((part) => part !== '')
    ? [{ value: parts, evidence: 'likely', reason: 'its text has several parts' }]
    : [];
}

function parseJson(text: string): Json | undefined {
  try {
    const value: Json = JSON.parse(text);
    return JSON.stringify(value).includes('"__proto__"') ? undefined : value;
  } catch {
    return undefined;
  }
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** The texts of RFC 3339 that a date may mean; "5/6/2024" has two. */
export function readDates(text: string, format: string): readonly TextReading[] {
  const [day = '', time = ''] = text.length > longestScalar ? [] : splitTime(text.trim());
  const dates = readDays(day);
  const reason = 'the schema wants a date in this form';
  return dates.flatMap(([year, month, date]): TextReading[] => {
    if (!isDay(year, month, date)) return [];
    const iso = `${year}-${String(month).padStart(2, '0')}-${String(date).padStart(2, '0')}`;
    const evidence = dates.length === 1 ? 'certain' : 'likely';
    if (format === 'date') return [{ value: iso, evidence: time === '' ? evidence : 'guess', reason }];
    const clock = /^\d\d:\d\d$/.test(time) ? `${time}:00` : time === '' ? '00:00:00' : time;
    const isZoned = /(z|[+-]\d\d:?\d\d)$/i.test(clock);
    return isZoned
      ? [{ value: `${iso}T${clock.toUpperCase()}`, evidence, reason }]
      : [{ value: `${iso}T${clock}Z`, evidence: 'guess', reason: `${reason}; UTC is assumed` }];
  });
}

/** @returns the day, and the time of it; the time is empty where the text has none */
function splitTime(text: string): readonly [day: string, time: string] {
  const at = text.search(/\d\d:\d\d/);
  const before = at < 0 ? '' : text.slice(0, at);
  const time = text.slice(at).replace(/\s+/g, '');
  const day = before.trimEnd();
  if (day.length < before.length) return [day, time];
  return day.toUpperCase().endsWith('T') ? [day.slice(0, -1), time] : [text, ''];
}

type Day = readonly [year: number, month: number, date: number];

function readDays(text: string): readonly Day[] {
  const numbers = text.split(/[-/. ,]+/).map(Number);
  const [a = 0, b = 0, c = 0] = numbers;
  if (/^\d{8}$/.test(text)) return [[a / 10_000, (a / 100) % 100, a % 100].map(Math.floor) as unknown as Day];
  if (/^\d{4}([-/.])\d{1,2}\1\d{1,2}$/.test(text)) return [[a, b, c]];
  if (/^\d{1,2}\.\d{1,2}\.\d{4}$/.test(text)) return [[c, b, a]];
  if (/^\d{1,2}([-/])\d{1,2}\1\d{4}$/.test(text))
    return a > 12
      ? [[c, b, a]]
      : b > 12 || a === b
        ? [[c, a, b]]
        : [
            [c, b, a],
            [c, a, b],
          ];
  const words = /^(?:(\d{1,2})\.? )?(\p{L}{3,9})\.? (?:(\d{1,2}),? )?(\d{4})$/u.exec(text);
  const month = months.indexOf((words?.[2] ?? '').slice(0, 3).toLowerCase()) + 1;
  const date = Number(words?.[1] ?? words?.[3] ?? 0);
  return month > 0 ? [[Number(words?.[4]), month, date]] : [];
}

function isDay(year: number, month: number, date: number): boolean {
  const day = new Date(Date.UTC(year, month - 1, date));
  return year > 999 && day.getUTCMonth() === month - 1 && day.getUTCDate() === date;
}
