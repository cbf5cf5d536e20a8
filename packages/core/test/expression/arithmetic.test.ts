import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyText } from '../../../../test/support/any-text.ts';
import { runs } from '../../../../test/support/runs.ts';
import type { Json } from '../../src/contracts/primitives.ts';
import { readCondition } from '../../src/expression/condition.ts';
import { ExpressionError, expressionLimits } from '../../src/expression/language.ts';
import { readTemplate, references } from '../../src/expression/template.ts';
import { aJob, evaluateIn } from './a-scope.ts';

const job = aJob({ a: 7, b: 2, 'a-b': 40, s: '3', n: null, l: [1, 2] });

it.each<[expression: string, value: number]>([
  ['1 + 2 * 3', 7],
  ['(1 + 2) * 3', 9],
  ['10 - 4 - 3', 3],
  ['100 / 10 / 5', 2],
  ['2 * 3 - 4 / 2', 4],
  ['job.a-b - job.a', 33],
  ['job.a - -2', 9],
  ['job.a*job.b', 14],
  ['job.a/job.b', 3.5],
  ['job.a+job.b', 9],
  ['job.l[*] | length * 10', 20],
  ['(job.s | number) + 1', 4],
  ['job.x ?? job.a + 1', 8],
  ['(job.x ?? job.a) + 1', 8],
  ['job.x * 2 ?? 5', 5],
  ['2 / job.x + 1 ?? 5', 5],
  ['0 * -1', 0],
])('{{ %s }} is %d', (expression, value) => {
  expect(evaluateIn(`{{ ${expression} }}`, job)).toBe(value);
});

it.each<[expression: string, error: string]>([
  ['job.a -1', '- between two values needs white space on both sides'],
  ['(job.a -1)', '- between two values needs white space on both sides'],
  ['(job.a)-(job.b)', '- between two values needs white space on both sides'],
  ['(job.a)- job.b', '- between two values needs white space on both sides'],
  ['(job.a) -job.b', '- between two values needs white space on both sides'],
  ['job.a +', 'expected a path, a value or (, found "}}"'],
  ['* job.a', 'expected a path, a value or (, found "*"'],
  ['- job.a', 'expected a path, a value or (, found "-"'],
])('refuses {{ %s }}', (expression, error) => {
  expect(readTemplate(`{{ ${expression} }}`).errors.map(({ message }) => message)).toEqual([error]);
});

it.each<[expression: string, error: string]>([
  ['job.s + 1', '+ takes numbers, not a string'],
  ['1 + job.n', '+ takes numbers, not null'],
  ['job.n + 1 ?? 0', '+ takes numbers, not null'],
  ['job.l * 2', '* takes numbers, not a list of 2'],
  ['1 / (job.b - 2)', 'a number is divided by 0'],
  ['1e308 * 10', 'the result of * is too large for a number'],
  ['job.x + 1', 'job.x does not exist: job is an object with the keys a, b, a-b, s, n, l'],
])('fails on {{ %s }}', (expression, error) => {
  expect(() => evaluateIn(`{{ ${expression} }}`, job)).toThrow(ExpressionError);
  expect(() => evaluateIn(`{{ ${expression} }}`, job)).toThrow(error);
});

it('compares results in conditions', () => {
  expect(readCondition('job.a - 1 > job.b * 2').errors).toEqual([]);
});

it('covers the paths of a calculation by the ?? after it', () => {
  const { template } = readTemplate('{{ job.a * job.b ?? job.c + 1 }}');
  expect(references(template).map(({ segments, optional }) => [segments[0], optional])).toEqual([
    ['a', true],
    ['b', true],
    ['c', false],
  ]);
});

it('calculates as JavaScript does, and never ends in a number that JSON cannot hold', () => {
  const number = fc.double({ noNaN: true, noDefaultInfinity: true });
  fc.assert(
    fc.property(number, number, fc.constantFrom('+', '-', '*', '/'), (a, b, sign) => {
      const wanted = { '+': a + b, '-': a - b, '*': a * b, '/': a / b }[sign] as number;
      const calculate = () => evaluateIn(`{{ job.a ${sign} job.b }}`, aJob({ a, b }));
      if (Number.isFinite(wanted)) expect(calculate()).toBe(wanted + 0);
      else expect(calculate).toThrow(ExpressionError);
    }),
    { numRuns: runs(200) },
  );
});

it('calculates a text of full length', () => {
  const terms = Math.floor((expressionLimits.stringBytes - 10) / 4);
  expect(evaluateIn(`{{ 0${' + 1'.repeat(terms)} }}`, job)).toBe(terms);
});

describe('the filter tokens', () => {
  const count = (value: Json) => evaluateIn('{{ job.v | tokens }}', aJob({ v: value }));

  it.each<[name: string, value: Json, tokens: number]>([
    ['the bytes of a text', 'hello', 5],
    ['bytes, not characters', 'é😀', 6],
    ['the JSON text of a list', [{ role: 'user', content: 'hi' }], 34],
    [
      'a constant for an image, whatever its size',
      [{ type: 'image_url', image_url: { url: 'x'.repeat(50_000) } }],
      4_096 + 46,
    ],
    [
      'an image in the form of Anthropic alike',
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'x'.repeat(50_000) } },
      4_096 + 78,
    ],
    ['the words beside an image', { type: 'image', alt: 'x'.repeat(9_000) }, 4_096 + 9_000 + 26],
    [
      'the content of a file or a sound too',
      { type: 'file', file: { data: 'x'.repeat(5_000) } },
      4_096 + 5_000 + 36,
    ],
    [
      'a constant for each part that is no text',
      [{ type: 'input_audio' }, { type: 'file' }, { type: 'image' }],
      3 * 4_096 + 61,
    ],
    ['the whole of a part with another type', [{ type: 'text', text: 'x'.repeat(1_000) }], 1_029],
    ['a null', null, 4],
  ])('counts %s', (_, value, tokens) => {
    expect(count(value)).toBe(tokens);
  });

  it('counts at least the bytes of the JSON text', () => {
    const plain = fc.string().filter((text) => JSON.stringify(text).length === text.length + 2);
    const value = fc.jsonValue({ maxDepth: 4 }).filter((one) => !/\\|"type"/.test(JSON.stringify(one)));
    fc.assert(
      fc.property(fc.oneof(plain, value), (one) => {
        const bytes = Buffer.byteLength(typeof one === 'string' ? one : JSON.stringify(one));
        expect(count(one as Json)).toBeGreaterThanOrEqual(bytes);
      }),
      { numRuns: runs(200) },
    );
  });

  it('counts the bytes that UTF-8 has', () => {
    fc.assert(
      fc.property(anyText(), (text) => {
        expect(count(text)).toBe(Buffer.byteLength(text));
      }),
      { numRuns: runs(200) },
    );
  });

  it('ends within the limit of a template', () => {
    const list = Array.from({ length: 2_000 }, () => 'x'.repeat(20_000));
    expect(() => count(list)).toThrow(/units of work/);
  });
});
