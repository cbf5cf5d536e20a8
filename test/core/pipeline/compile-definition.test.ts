import { expect, it } from 'vitest';
import { ExpressionSyntaxError } from '../../../src/core/expression/errors.ts';
import { evaluateTemplate } from '../../../src/core/expression/evaluate.ts';
import { compileDefinition } from '../../../src/core/pipeline/compile-definition.ts';
import { aJob, aScope } from '../expression/a-scope.ts';
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

it('gives a step without input an empty object', () => {
  const { steps } = compileDefinition(aDefinition());
  expect(steps[0] && evaluateTemplate(steps[0].input, aScope())).toEqual({});
});

it('refuses a definition that was never checked', () => {
  expect(() => compileDefinition(aDefinition({ output: '{{ nope }}' }))).toThrow(ExpressionSyntaxError);
});
