import { describe, expect, it } from 'vitest';
import type { Json } from '../../src/contracts/primitives.ts';
import { compileCondition, evaluateCondition, readCondition } from '../../src/expression/condition.ts';
import { ExpressionError, ExpressionSyntaxError } from '../../src/expression/language.ts';
import { referencedSteps, references } from '../../src/expression/template.ts';
import { aJob, aScope } from './a-scope.ts';

function parenthesised(depth: number) {
  return `${'('.repeat(depth)}true${')'.repeat(depth)}`;
}

const refused: (readonly [value: Json, offset: number, message: RegExp, code?: string])[] = [
  ['', 0, /ends where a path, a value or \( was expected/],
  ['{{ }}', 3, /expected a path, a value or \(, found "}}"/],
  ['{{ job.a', 8, /{{ is never closed/],
  ['job.a }}', 6, /expected an operator or a filter, found "}}"/],
  ['job.a == {{ job.b }}', 9, /unexpected "{{"; an expression holds no {{ }}/],
  ['{{ job.a }} == 1', 11, /one {{ }} holds the whole condition/],
  ['{{ job.a }} {{ job.b }}', 11, /one {{ }} holds the whole condition/],
  ['job.a job.b', 6, /expected an operator or a filter/],
  ['(job.a).b', 7, /closing parenthesis/],
  ['job.a &&', 8, /ends where/],
  ['(job.a', 6, /ends where an operator or \) was expected/],
  ['job["a', 4, /never closed/],
  ['title == 1', 0, /no root/, 'root_unknown'],
  ['job.constructor == 1', 4, /not allowed/, 'name_forbidden'],
  [parenthesised(65), 64, /nests deeper than 64/, 'expression_limit'],
  [`"${'x'.repeat(65_535)}"`, 0, /at most 65536 bytes/, 'expression_limit'],
  [1, 0, /a condition is needed, not a number/],
  [null, 0, /a condition is needed, not null/],
  [['job.a'], 0, /a condition is needed, not a list of 1/],
];

describe('a when value', () => {
  it.each([
    ['job.a == 1', true],
    ['{{ job.a == 1 }}', true],
    [' \n{{job.a > 1 || job.b}}\n', false],
    ['!job.b', true],
    ['job.b ?? true', false],
    ['(job.l | length) > 1 && "x" in job.l', true],
    ['"}}" == "}}"', true],
    [parenthesised(64), true],
    [true, true],
    [false, false],
  ] satisfies [Json, boolean][])('%j is a condition', (value, expected) => {
    const scope = aJob({ a: 1, b: false, l: ['x', 'y'] });
    expect(evaluateCondition(compileCondition(value), scope)).toBe(expected);
  });

  it.each(refused.map((row) => [JSON.stringify(row[0]).slice(0, 60), row] as const))(
    '%s is none',
    (_, row) => {
      const [value, offset, message, code = 'expression_syntax'] = row;
      const { errors, condition } = readCondition(value, '/steps/0/when');
      expect(errors).toHaveLength(1);
      expect(errors[0]).toMatchObject({
        code,
        offset,
        pointer: '/steps/0/when',
        message: expect.stringMatching(message),
      });
      expect(evaluateCondition(condition, aScope())).toBe(false);
      expect(() => compileCondition(value)).toThrow(ExpressionSyntaxError);
    },
  );

  it.each([
    ['job.a', 'a boolean is needed, not a string; compare instead'],
    ['job', 'a boolean is needed, not an object with the keys a; compare instead'],
    ['null', 'a boolean is needed, not null; compare instead'],
  ])('%s is no boolean', (text, message) => {
    const condition = compileCondition(text, '/steps/3/when');
    const evaluate = () => evaluateCondition(condition, aJob({ a: 'true' }));
    expect(evaluate).toThrow(ExpressionError);
    expect(evaluate).toThrow(expect.objectContaining({ message, pointer: '/steps/3/when' }));
  });

  it('fails where a path is missing', () => {
    const condition = compileCondition('job.missing == null');
    expect(() => evaluateCondition(condition, aScope())).toThrow(/job.missing does not exist/);
  });

  it('lists the paths that it mentions, and where', () => {
    const condition = compileCondition('steps.a.output.ok && (steps["b"].status ?? "") == item.x', '/w');
    expect(referencedSteps(condition)).toEqual(['a', 'b']);
    expect(references(condition).map(({ root, optional, offset }) => [root, optional, offset])).toEqual([
      ['steps', false, 0],
      ['steps', true, 22],
      ['item', false, 50],
    ]);
    expect(condition.expressions).toBe(1);
  });
});
