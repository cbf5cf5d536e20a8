/**
 * Other readings of a text: a number, with its thousands, multiple or unit; a truth; a date in another order. A reading
 * is certain where people write nothing else with these letters. "1,500" may be 1500 or 1.5, and "10s" is 10 only for a
 * key that counts seconds, so these are likely at most.
 */
import type { Json } from '../contracts/primitives.ts';
import type { Certainty } from './candidate.ts';
import { convert, isSelfEvident, type NumberUnit, unitNamed, unitOf } from './units.ts';

export interface TextReading {
  readonly value: Json;
  /** Its name among the readings of its kind: the same for other texts that are read alike. */
  readonly way: string;
  readonly evidence: Certainty;
  readonly reason: string;
}

/** The hints of the key about the numbers that it takes. */
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

function reading(value: number, how: Omit<TextReading, 'value'>): TextReading[] {
  const isSafe = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  return isSafe ? [{ value: value + 0, ...how }] : []; // avoids the -0 of "-0", which JSON writes as 0
}

/** The numbers that a text may mean, the most likely first. */
export function readNumbers(text: string, hint: KeyHint): readonly TextReading[] {
  const digits = text.length > longestScalar ? '' : text.trim();
  if (jsonNumber.test(digits)) return readPlain(digits);
  const bare = digits.replace(/[ _,]/g, '');
  if (grouped.test(digits) || manyCommas.test(digits)) {
    return reading(Number(bare), {
      way: 'grouped',
      evidence: 'certain',
      reason: 'its digits are only grouped',
    });
  }
  if (oneComma.test(digits)) {
    const groups = {
      way: 'thousands-comma',
      evidence: 'likely',
      reason: 'a comma may group digits',
    } as const;
    const parts = { way: 'decimal-comma', evidence: 'likely', reason: 'a comma may be a point' } as const;
    const thousands = /,\d{3}$/.test(digits) ? reading(Number(bare), groups) : [];
    return [...thousands, ...reading(Number(digits.replace(',', '.')), parts)];
  }
  const [, number, suffix] = withSuffix.exec(digits) ?? [];
  return number === undefined || suffix === undefined ? [] : readWithUnit(Number(number), suffix, hint);
}

function readPlain(digits: string): readonly TextReading[] {
  const reason = 'the schema wants a number there';
  if (!doubtfulPoint.test(digits)) {
    return reading(Number(digits), { way: 'number', evidence: 'certain', reason });
  }
  const groups = { way: 'thousands-point', evidence: 'likely', reason: 'a point may group digits' } as const;
  return [
    ...reading(Number(digits), { way: 'decimal-point', evidence: 'likely', reason }),
    ...reading(Number(digits.replace('.', '')), groups),
  ];
}

function readWithUnit(number: number, suffix: string, hint: KeyHint): readonly TextReading[] {
  const keyUnit = unitOf(hint.key, hint.descriptions);
  const multiple = multiples[suffix];
  if (multiple !== undefined) {
    const evidence = keyUnit === undefined || keyUnit.dimension === 'frequency' ? 'certain' : 'likely';
    const reason = `${suffix} multiplies by ${multiple}`;
    return reading(Number((number * multiple).toPrecision(12)), { way: suffix, evidence, reason });
  }
  const unit = unitNamed(suffix);
  if (unit === undefined) return [];
  if (keyUnit !== undefined) {
    const converted = convert(number, unit, keyUnit);
    const reason = `the unit of ${hint.key} is known`;
    return converted === undefined ? [] : reading(converted, { way: suffix, evidence: 'certain', reason });
  }
  const base = convert(number, unit, { ...unit, size: 1 }) ?? number;
  if (isSelfEvident(unit) || unit.dimension === 'frequency') {
    const reason = `the unit ${suffix} goes without saying`;
    return reading(base, { way: suffix, evidence: 'certain', reason });
  }
  return readInUnits(number, { base, unit, suffix });
}

/** The key may count in the unit that is written, in the smallest, or in seconds. */
function readInUnits(
  number: number,
  { base, unit, suffix }: Readonly<{ base: number; unit: NumberUnit; suffix: string }>,
): readonly TextReading[] {
  const other = { evidence: 'likely', reason: 'the key may count in another unit' } as const;
  const same = { evidence: 'likely', reason: `the key may count in ${suffix}` } as const;
  const seconds = unit.dimension === 'time' ? [number * (unit.size / 1_000)] : [];
  return [number, base, ...seconds].flatMap((value, at, all) => {
    if (all.indexOf(value) !== at) return [];
    if (number === 0) return reading(0, { way: 'nothing', ...same }); // the units do not differ
    const way = `${suffix}-in-${['itself', 'smallest', 'seconds'][at]}`;
    return reading(value, { way, ...(value === number ? same : other) });
  });
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
  const reason = 'the schema wants true or false there';
  return [{ value: truth[0], way: 'truth', evidence: truth[1], reason }];
}

const longestJson = 10_000;

/** A list or an object that was written as text; a list also by commas. */
export function readContainers(text: string, wantsList: boolean): readonly TextReading[] {
  const parsed = text.length > longestJson || !/^\s*[[{]/.test(text) ? undefined : parseJson(text);
  if (parsed !== undefined)
    return [{ value: parsed, way: 'json', evidence: 'certain', reason: 'the text is its JSON' }];
  const parts = text.length > longestJson ? [] : text.split(/[,;\n]/).map((part) => part.trim());
  return wantsList && parts.length > 1 && parts.every((part) => part !== '')
    ? [{ value: parts, way: 'parts', evidence: 'likely', reason: 'its text has several parts' }]
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
  return dates.flatMap(([year, month, date, way]): TextReading[] => {
    if (!isDay(year, month, date)) return [];
    const iso = `${year}-${String(month).padStart(2, '0')}-${String(date).padStart(2, '0')}`;
    const evidence = dates.length === 1 ? 'certain' : 'likely';
    if (format === 'date') {
      const isWhole = time === '';
      const kept = isWhole ? way : `${way}-without-time`;
      return [{ value: iso, way: kept, evidence: isWhole ? evidence : 'guess', reason }];
    }
    const clock = /^\d\d:\d\d$/.test(time) ? `${time}:00` : time === '' ? '00:00:00' : time;
    const isZoned = /(z|[+-]\d\d:?\d\d)$/i.test(clock);
    return isZoned
      ? [{ value: `${iso}T${clock.toUpperCase()}`, way, evidence, reason }]
      : [
          {
            value: `${iso}T${clock}Z`,
            way: `${way}-in-utc`,
            evidence: 'guess',
            reason: `${reason}; UTC is assumed`,
          },
        ];
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

type Day = readonly [year: number, month: number, date: number, way: string];

function readDays(text: string): readonly Day[] {
  const numbers = text.split(/[-/. ,]+/).map(Number);
  const [a = 0, b = 0, c = 0] = numbers;
  if (/^\d{8}$/.test(text)) return [[Math.floor(a / 10_000), Math.floor(a / 100) % 100, a % 100, 'digits']];
  if (/^\d{4}([-/.])\d{1,2}\1\d{1,2}$/.test(text)) return [[a, b, c, 'year-first']];
  if (/^\d{1,2}\.\d{1,2}\.\d{4}$/.test(text)) return [[c, b, a, 'points']];
  if (/^\d{1,2}([-/])\d{1,2}\1\d{4}$/.test(text)) {
    const [dayFirst, monthFirst]: readonly [Day, Day] = [
      [c, b, a, 'day-first'],
      [c, a, b, 'month-first'],
    ];
    if (a === b) return [[c, a, b, 'same']];
    return a > 12 ? [dayFirst] : b > 12 ? [monthFirst] : [dayFirst, monthFirst];
  }
  const words = /^(?:(\d{1,2})\.? )?(\p{L}{3,9})\.? (?:(\d{1,2}),? )?(\d{4})$/u.exec(text);
  const month = months.indexOf((words?.[2] ?? '').slice(0, 3).toLowerCase()) + 1;
  const date = Number(words?.[1] ?? words?.[3] ?? 0);
  return month > 0 ? [[Number(words?.[4]), month, date, 'words']] : [];
}

function isDay(year: number, month: number, date: number): boolean {
  const day = new Date(Date.UTC(year, month - 1, date));
  return year > 999 && day.getUTCMonth() === month - 1 && day.getUTCDate() === date;
}
