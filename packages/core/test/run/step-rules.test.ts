import { expect, it, test } from 'vitest';
import { ExpressionError } from '../../src/expression/language.ts';
import {
  ceilingOfRun,
  evaluateSafely,
  judgeCondition,
  judgeItems,
  priorityOfRun,
  readList,
  reviewTimeoutOf,
  splitReference,
  termsOfSubRun,
  waitForCapabilityOf,
} from '../../src/run/step-rules.ts';

it.each([
  ['what its caller allows', 2, 1, 1],
  ['what its definition allows', 2, undefined, 2],
  ['no ceiling when its caller sets none', 2, null, null],
  ['no ceiling when there is no other', undefined, undefined, null],
])('a run may cost %s', (_, defined, asked, expected) => {
  const definition = defined === undefined ? {} : { budget_ceiling_usd: defined };
  expect(ceilingOfRun(definition, asked)).toBe(expected);
});

test('a reference is a name and the text behind the first @', () => {
  expect(splitReference('reel@1.0')).toEqual(['reel', '1.0']);
  expect(splitReference('reel@a@b')).toEqual(['reel', 'a@b']);
});

test('a list that cannot be worked out fails as its expression does', () => {
  const error = { code: 'expression_unresolved', message: 'job.clips does not exist' };
  expect(readList({ error })).toEqual({ error });
  expect(readList({ value: ['a'] })).toEqual({ value: ['a'] });
});

test('an expression fails its step, and any other error is not caught', () => {
  const fail = (error: Error) => () => {
    throw error;
  };
  expect(evaluateSafely(fail(new ExpressionError({ pointer: '', message: 'no such key' })))).toEqual({
    error: { code: 'expression_unresolved', message: 'no such key' },
  });
  expect(() => evaluateSafely(fail(new TypeError('broken')))).toThrow('broken');
});

test('a step reports which of its expressions failed', () => {
  const error = { code: 'expression_unresolved', message: 'no such key' };
  expect(judgeCondition({ error })).toMatchObject({ error: { message: 'when: no such key' } });
  expect(judgeItems({ error })).toMatchObject({ error: { message: 'for_each.items: no such key' } });
});

it.each([
  [
    'its caller asks for',
    'interactive',
    { priority: 'batch', defaults: { priority: 'batch' } },
    'interactive',
  ],
  ['its definition has', undefined, { priority: 'batch', defaults: { priority: 'interactive' } }, 'batch'],
  ['its defaults have', undefined, { defaults: { priority: 'interactive' } }, 'interactive'],
  ['is usual', undefined, {}, 'standard'],
] as const)('a run has the priority that %s', (_, asked, definition, priority) => {
  expect(priorityOfRun(definition, asked)).toBe(priority);
});

test('a child run has the priority of its step, else of the run above', () => {
  const step = { id: 'a', pipeline: 'reel@1' };
  const above = { priority: 'interactive', depth: 1 } as const;
  expect(termsOfSubRun(step, above)).toEqual({
    reference: 'reel@1',
    priority: 'interactive',
    ceilingUsd: null,
    depth: 2,
  });
  expect(termsOfSubRun({ ...step, priority: 'batch' }, above).priority).toBe('batch');
});

test('a step waits for its capability as long as its definition allows', () => {
  const step = { id: 'a', capability: 'mix' };
  const message = (allowed: string) => `no instance of mix is registered; wait_for_capability is ${allowed}`;
  expect(waitForCapabilityOf(step)).toEqual({
    ms: 0,
    failure: { code: 'no_instance', message: message('0s') },
  });
  expect(waitForCapabilityOf({ ...step, wait_for_capability: '2m' })).toEqual({
    ms: 120_000,
    failure: { code: 'no_instance', message: message('2m') },
  });
});

test('a review takes a day, or as long as its definition allows', () => {
  expect(reviewTimeoutOf({})).toBe('24h');
  expect(reviewTimeoutOf({ review: { title: 'ok?' } })).toBe('24h');
  expect(reviewTimeoutOf({ review: { title: 'ok?', timeout: '2h' } })).toBe('2h');
});
