import { describe, expect, it } from 'vitest';
import type { Json } from '../../src/contracts/primitives.ts';
import { evaluateCondition, readCondition } from '../../src/expression/condition.ts';
import { evaluateTemplate } from '../../src/expression/evaluate.ts';
import { skillDialect } from '../../src/expression/filters.ts';
import { compileTemplate, readTemplate } from '../../src/expression/template.ts';
import { evaluateIn } from './a-scope.ts';
import {
  brokenConditions,
  brokenExamples,
  conditionExamples,
  exampleScope,
  examples,
  filterExamples,
  itemExamples,
  itemScope,
  skillFilterExamples,
  skillScope,
} from './examples.ts';

function evaluateInSkill(template: Json): Json {
  return evaluateTemplate(compileTemplate(template, '', skillDialect), skillScope);
}

function evaluateWhen(value: Json): boolean {
  return evaluateCondition(readCondition(value).condition, exampleScope);
}

function failureOf(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  return undefined;
}

describe('the examples of the reference page', () => {
  it.each([...examples, ...Object.values(filterExamples)])(
    'evaluate to their value: $template',
    (example) => {
      expect(evaluateIn(example.template, exampleScope)).toStrictEqual(example.value);
    },
  );

  it.each(itemExamples)('evaluate to their value inside for_each: $template', ({ template, value }) => {
    expect(evaluateIn(template, itemScope)).toStrictEqual(value);
  });

  it.each(Object.values(skillFilterExamples))('evaluate to their value in a skill: $template', (example) => {
    expect(evaluateInSkill(example.template)).toStrictEqual(example.value);
  });

  it.each(conditionExamples)('evaluate to their value as when: $template', ({ template, value }) => {
    expect(readCondition(template).errors).toEqual([]);
    expect(evaluateWhen(template)).toBe(value);
  });

  it.each(brokenExamples)('fail with their error: $template', ({ template, found, error }) => {
    const { errors } = readTemplate(template);
    const failure = errors[0] ?? failureOf(() => evaluateIn(template, exampleScope));
    expect([errors.length > 0 ? 'submission' : 'run', failure]).toEqual([
      found,
      expect.objectContaining({ message: error }),
    ]);
  });

  it.each(brokenConditions)('fail with their error as when: $template', ({ template, found, error }) => {
    const { errors } = readCondition(template);
    const failure = errors[0] ?? failureOf(() => evaluateWhen(template));
    expect([errors.length > 0 ? 'submission' : 'run', failure]).toEqual([
      found,
      expect.objectContaining({ message: error }),
    ]);
  });
});
