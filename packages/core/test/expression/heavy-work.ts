/** Expressions that make each part of the language work as hard as it can, on values of many shapes. */
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import { evaluateTemplate } from '../../src/expression/evaluate.ts';
import { skillDialect } from '../../src/expression/filters.ts';
import { ExpressionError } from '../../src/expression/language.ts';
import type { Meter } from '../../src/expression/meter.ts';
import { type CompiledTemplate, compileTemplate } from '../../src/expression/template.ts';

function list<Item>(length: number, item: (at: number) => Item): Item[] {
  return Array.from({ length }, (_, at) => item(at));
}

/** Numbers that look like chance and are the same at every start. */
function mixed(at: number): number {
  return ((at + 1) * 2_654_435_761) % 4_294_967_296;
}

/** Values of about this many characters or items, by name. */
export function heavyValues(size: number): JsonObject {
  const few = Math.ceil(size / 10);
  return {
    text: 'x'.repeat(size),
    words: 'a b,c/d '.repeat(Math.ceil(size / 8)),
    wide: 'жß€漢'.repeat(Math.ceil(size / 4)),
    astral: '😀'.repeat(Math.ceil(size / 2)),
    slashes: '/'.repeat(size),
    blanks: ' '.repeat(size),
    quotes: '"'.repeat(size),
    controls: '\u0001'.repeat(size),
    digits: '9'.repeat(size),
    'json of numbers': `[${'1,'.repeat(Math.ceil(size / 2))}1]`,
    'json of lists': `[${'[],'.repeat(Math.ceil(size / 3))}[]]`,
    'json of objects': `[${list(Math.ceil(size / 10), (at) => `{"k${at}":1}`).join(',')}]`,
    'json of keys': `{${list(Math.ceil(size / 10), (at) => `"k${at}":1`).join(',')}}`,
    'json of lost numbers': `[${'1,'.repeat(Math.ceil(size / 2))}12345678901234567890123]`,
    'json of deep lists': '['.repeat(size / 2) + ']'.repeat(size / 2),
    numbers: list(size, (at) => at % 10),
    'mixed numbers': list(size, mixed),
    fractions: list(few, (at) => 1 / mixed(at)),
    booleans: list(size, (at) => at % 2 === 0),
    nulls: list(size, () => null),
    texts: list(size, (at) => `${mixed(at)}`),
    'long texts': list(Math.ceil(size / 100), (at) => `${'x'.repeat(100)}${mixed(at)}`),
    'equal texts': list(size, () => 'x'),
    lists: list(size, () => []),
    'lists of two': list(size, (at) => [at, at]),
    'one long list': [list(size, (at) => at)],
    objects: list(few, (at) => ({ a: mixed(at), b: `${at}` })),
    'equal objects': list(few, () => ({ a: 'x', b: { c: [1] } })),
    'objects with long keys': list(Math.ceil(size / 100), (at) => ({
      [`${'k'.repeat(100)}${at}`]: 1,
      a: at,
    })),
    keys: Object.fromEntries(list(few, (at) => [`k${mixed(at)}`, at])),
    messages: list(few, () => ({ role: 'user', content: [{ type: 'text', text: 'a b c' }] })),
    'a moment': '2026-01-31T08:00:00.123Z',
    'a number': 1.005,
    'a number as text': '1.23456789e-17',
    'an exact number': '12345678901234567890',
    true: true,
  };
}

/** Each filter with arguments that make it work, by the name of the filter. */
export const heavyFilters: Readonly<Record<string, readonly string[]>> = {
  json: ['json'],
  string: ['string'],
  number: ['number'],
  bool: ['bool'],
  length: ['length'],
  first: ['first'],
  last: ['last'],
  join: ['join("")', 'join("a long separator")'],
  basename: ['basename'],
  tokens: ['tokens'],
  default: ['default(job.v)'],
  map: ['map("a")'],
  where: ['where("a" == 1)', 'where("b" < "5")', 'where("a" in job.few)'],
  concat: ['concat(job.v)', 'concat([])'],
  slice: ['slice(1, -1)', 'slice(0, 1)'],
  unique: ['unique'],
  flatten: ['flatten'],
  at: ['at(0)', 'at("a")'],
  range: ['range', 'range(7)'],
  combinations: ['combinations'],
  sort: ['sort'],
  sort_by: ['sort_by("a")', 'sort_by("b")'],
  reverse: ['reverse'],
  sum: ['sum'],
  min: ['min'],
  max: ['max'],
  keys: ['keys'],
  values: ['values'],
  lower: ['lower'],
  upper: ['upper'],
  trim: ['trim'],
  split: [
    'split("x")',
    'split(",")',
    'split("xxxxxxxy")',
    `split("${'x'.repeat(63)}y")`,
    `split("y${'x'.repeat(63)}")`,
  ],
  replace: [
    'replace("x", "")',
    'replace("x", "xx")',
    'replace("/", "-")',
    `replace("${'x'.repeat(31)}y", "")`,
  ],
  parse_json: ['parse_json'],
  round: ['round', 'round(2)'],
  floor: ['floor'],
  ceil: ['ceil'],
  abs: ['abs'],
  timestamp: ['timestamp'],
  format_date: ['format_date("YYYY-MM-DD")', `format_date("${'MM'.repeat(2_000)}")`],
  add_duration: ['add_duration("1d")', 'add_duration(job.v)'],
  int: ['int'],
  even: ['even'],
};

/** Conditions over the value `job.v` and its copy `job.w`. */
export const heavyConditions: readonly string[] = [
  'job.v == job.w',
  'job.v != job.w',
  'job.v < job.w',
  'job.v in job.w',
  '"y" in job.v',
  'job.needle in job.v',
  '0 in job.v',
  'job.v[*].a == 0',
  'job.v[*][*] == 0',
  '[job.v, job.v] == 0',
  '{"a": job.v} == 0',
  '(job.v.missing ?? 0) == 0',
  'job.n * 2 + 1 > 3 && !false || job.n in [1, 2, 3]',
];

export interface Work {
  readonly units: number;
  readonly isRefused: boolean;
}

/** Evaluates it, with any result. */
export function work(template: CompiledTemplate, job: JsonObject, meter: Meter): Work {
  try {
    evaluateTemplate(template, { job, steps: {}, run, item: null }, meter);
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return { units: meter.spent, isRefused: error.isTooLarge };
  }
  return { units: meter.spent, isRefused: false };
}

const run = { id: 'run_1', job_id: 'job_1', attempt: 1, pipeline: 'p', version: '1' };

/** The job of a value. */
export function jobOf(value: Json): JsonObject {
  const needle = `${'x'.repeat(200)}y${'x'.repeat(200)}`;
  return { v: value, w: structuredClone(value) as Json, few: [1, 2, 3], n: 2, needle };
}

/** Nothing of the value of a filter is copied. */
export function filterTemplate(filter: string): CompiledTemplate {
  return compileTemplate(`{{ ((job.v | ${filter}) == 0) }}`, '', dialect);
}

export function conditionTemplate(condition: string): CompiledTemplate {
  return compileTemplate(`{{ (${condition}) }}`, '', dialect);
}

const dialect = { ...skillDialect, roots: ['job'] as const };

/** The same again and again, until the meter refuses it. */
export function repeated({ root }: CompiledTemplate): CompiledTemplate {
  return { root: { kind: 'list', items: Array(50_000).fill(root) }, expressions: 1 };
}
