import { expect, it } from 'vitest';
import { compileDefinition } from '../../../src/definition/compile.ts';
import { evaluateCondition } from '../../../src/expression/condition.ts';
import { evaluateTemplate } from '../../../src/expression/evaluate.ts';
import { ExpressionSyntaxError } from '../../../src/expression/language.ts';
import { aJob, aScope } from '../../expression/a-scope.ts';
import { aDefinition, aStep } from './a-definition.ts';

it('joins depends_on with the steps that expressions mention, each once, in definition order', () => {
  const definition = aDefinition({
    steps: [
      aStep({
        id: 'd',
        depends_on: ['c', 'a'],
        input: { x: '{{ steps.b.output }} {{ steps.c.status ?? steps.a.error }}' },
      }),
      aStep({ id: 'a' }),
      aStep({ id: 'b', input: { $literal: '{{ steps.a.output }}' } }),
      aStep({ id: 'c', input: { deep: [{ x: 'x {{ steps["a"].output ?? "" }}' }] } }),
    ],
  });
  const { steps, output } = compileDefinition(definition);
  expect(steps.map(({ dependencies }) => dependencies)).toEqual([[1, 2, 3], [], [], [1]]);
  expect(steps.map((step) => step.definition)).toEqual(definition.steps);
  expect(output).toBeNull();
});

it('compiles inputs and the output, with pointers into the definition', () => {
  const { steps, output } = compileDefinition(
    aDefinition({ steps: [aStep({ input: { x: '{{ job.n }}' } })], output: '{{ steps.a.output }}' }),
  );
  expect(steps[0] && evaluateTemplate(steps[0].input, aJob({ n: 1 }))).toEqual({ x: 1 });
  expect(output && evaluateTemplate(output, aScope({ steps: { a: { output: [2] } } }))).toEqual([2]);
  expect(() => steps[0] && evaluateTemplate(steps[0].input, aJob({}))).toThrow(
    expect.objectContaining({ pointer: '/steps/0/input/x' }),
  );
});

it('compiles conditions, items and the concurrency key, and waits for what they mention', () => {
  const { steps, concurrencyKey } = compileDefinition(
    aDefinition({
      concurrency: { key: 'for {{ job.n }}', limit: 1 },
      steps: [
        { id: 'w', wait: '1s' },
        { id: 'r', review: { title: 'ok?' } },
        { id: 's', pipeline: 'reel@1', when: 'steps.w.status == "succeeded" && job.n > 0' },
        aStep({ for_each: { items: '{{ steps.r.output ?? job.list }}' } }),
      ],
    }),
  );
  expect(steps.map(({ kind, dependencies }) => [kind, dependencies])).toEqual([
    ['wait', []],
    ['review', []],
    ['run', [0]],
    ['call', [1]],
  ]);
  const scope = { ...aJob({ n: 1, list: [3] }), steps: { w: { status: 'succeeded' } } };
  expect(steps[2]?.when && evaluateCondition(steps[2].when, scope)).toBe(true);
  expect(steps[3]?.items && evaluateTemplate(steps[3].items, scope)).toEqual([3]);
  expect(concurrencyKey && evaluateTemplate(concurrencyKey, scope)).toBe('for 1');
  expect([steps[0]?.when, steps[0]?.items]).toEqual([null, null]);
});

it('gives a step without input an empty object', () => {
  const { steps } = compileDefinition(aDefinition());
  expect(steps[0] && evaluateTemplate(steps[0].input, aScope())).toEqual({});
});

it('refuses a definition that was never checked', () => {
  expect(() => compileDefinition(aDefinition({ output: '{{ nope }}' }))).toThrow(ExpressionSyntaxError);
});
