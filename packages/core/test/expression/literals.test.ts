/** Lists and objects that an expression writes. */
import { describe, expect, it } from 'vitest';
import type { Json } from '../../src/contracts/primitives.ts';
import { evaluateCondition, readCondition } from '../../src/expression/condition.ts';
import { evaluateTemplate } from '../../src/expression/evaluate.ts';
import { expressionLimits } from '../../src/expression/language.ts';
import { Meter } from '../../src/expression/meter.ts';
import { compileTemplate, readTemplate, references } from '../../src/expression/template.ts';
import { aJob, evaluateIn } from './a-scope.ts';

const job = aJob({
  a: 1,
  s: 'x',
  n: null,
  l: [1, 2],
  o: { k: [] },
  kind: 'shot',
  items: [{ k: 'a' }, { k: 'c' }],
});

describe('a list or an object', () => {
  it.each<[expression: string, value: Json]>([
    ['[]', []],
    ['{}', {}],
    ['job.x ?? []', []],
    ['job.n ?? {}', {}],
    ['job.x | default([])', []],
    ['job.n | default({"a": job.a})', { a: 1 }],
    ['job.s | default([])', 'x'],
    ['job.x | default(job.y) | default(2)', 2],
    ['job.s | default(job.x)', 'x'],
    ['[ 1 , "two", job.a, null, [], {} ]', [1, 'two', 1, null, [], {}]],
    ['{"a": job.b ?? {"c": {}}}', { a: { c: {} } }],
    ["{'in': [job.l, job.o.k], \"{{\": '}}'}", { in: [[1, 2], []], '{{': '}}' }],
    ['{"b":1,"a":{"c":[{"d":2}]}}', { b: 1, a: { c: [{ d: 2 }] } }],
    ['[job.x] ?? ["none"]', ['none']],
    ['{"a": [job.x]} ?? {}', {}],
    ['[job.l[*], job.l | length]', [[1, 2], 2]],
    ['[3, 1, 2] | sort | join("-")', '1-2-3'],
    ['job.l | concat([job.a + 8])', [1, 2, 9]],
    ['job.items | where("k" in ["a", "b"]) | map("k")', ['a']],
    ['( job.kind in ["shot", "cut"] )', true],
    ['( job.o == {"k": []} )', true],
    ['{"a": 1} | keys', ['a']],
  ])('{{ %s }}', (expression, value) => {
    expect(evaluateIn(`{{ ${expression} }}`, job)).toStrictEqual(value);
    expect(evaluateIn(`{{${expression}}}`, job)).toStrictEqual(value);
    expect(evaluateIn(`> {{${expression}|json}}`, job)).toBe(`> ${JSON.stringify(value)}`);
  });

  it('is allowed in a bare condition', () => {
    const { condition, errors } = readCondition('job.kind in ["shot", job.s] && job.x ?? {} == {}');
    expect([errors, evaluateCondition(condition, job)]).toEqual([[], true]);
  });

  it.each<[expression: string, error: string, offset: number]>([
    ['[1, 2', 'expected an operator, a comma or ], found "}}"', 9],
    ['[1 2]', 'expected an operator, a comma or ], found "2"', 6],
    ['[1,]', 'expected a path, a value or (, found "]"', 6],
    ['[,]', 'expected a path, a value or (, found ","', 4],
    ['[job.a == 1]', 'expected an operator, a comma or ], found "=="', 10],
    ['{a: 1}', 'expected a key in quotes: {"key": value}, found "a"', 4],
    ['{"a" 1}', 'expected : and a value after the key, found "1"', 8],
    ['{"a": 1', 'expected }}, an operator or a filter, found "}"', 12],
    ['[{"a": 1]', 'expected an operator, a comma or }, found "]"', 11],
    ['{"a": 1, "a": 2}', 'the key a is written twice', 12],
    ['{"__proto__": 1}', 'the name __proto__ is not allowed', 4],
    ['[job.l][0]', 'only an operator or a filter may follow a list', 10],
    ['{"a": 1}.a', 'only an operator or a filter may follow an object', 11],
    ['job.a {{ 1', 'unexpected "{{"; an expression holds no {{ }}', 9],
    ['{{"a": 1}}', 'unexpected "{{"; an expression holds no {{ }}', 3],
  ])('is refused in {{ %s }}', (expression, error, offset) => {
    const { errors } = readTemplate(`{{ ${expression} }}`);
    expect(errors.map((one) => [one.message, one.offset])).toEqual([[error, offset]]);
  });

  it('nests as deep as parentheses', () => {
    const nested = (depth: number): string => `{{ ${'['.repeat(depth)}${']'.repeat(depth)} }}`;
    expect(readTemplate(nested(expressionLimits.nesting)).errors).toEqual([]);
    const { errors } = readTemplate(nested(expressionLimits.nesting + 1));
    expect(errors.map(({ code }) => code)).toEqual(['expression_limit']);
  });

  it('is charged by its items and keys, also where no result holds it', () => {
    const items = `{{ ${`[${'1,'.repeat(99)}1]`} | length }}`;
    const keys = `{{ {"${'k'.repeat(900)}": 1} | length }}`;
    for (const text of [items, keys]) {
      const template = compileTemplate(text);
      expect(() => evaluateTemplate(template, job, new Meter(100))).toThrow('more than 100 units of work');
      expect(evaluateTemplate(template, job, new Meter(3_000))).toBeGreaterThan(0);
    }
  });

  it('mentions the paths in it, which a ?? after it covers', () => {
    const paths = references(
      compileTemplate('{{ [job.a, {"k": steps.s.output}] ?? job.b | default(job.c) }}'),
    );
    expect(paths.map(({ segments, optional }) => [segments[0], optional])).toEqual([
      ['a', true],
      ['s', true],
      ['b', true],
      ['c', false],
    ]);
  });
});
