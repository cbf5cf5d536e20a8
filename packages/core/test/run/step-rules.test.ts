import { expect, it, test } from 'vitest';
import { ExpressionError } from '../../src/expression/language.ts';
import {
  ceilingOfRun,
  evaluateSafely,
  judgeCondition,
  judgeItems,
  judgeWhenOfItems,
  priorityOfRun,
  readList,
  reviewTimeoutOf,
  splitReference,
  termsOfSubRun,
  toAnswerVerdict,
  toInput,
  toQueueTimeout,
  toTitle,
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

const unresolved = { code: 'expression_unresolved', message: 'job.x does not exist' };

test('the input of a step is an object', () => {
  expect(toInput({ a: 1 })).toEqual({ value: { a: 1 } });
  expect(toInput('a')).toEqual({
    error: { code: 'expression_unresolved', message: 'input: an object is needed, not a string' },
  });
});

test('work beyond a limit has its place in the message', () => {
  const error = new ExpressionError({
    message: 'too much work',
    pointer: '/steps/0/input',
    isTooLarge: true,
  });
  const evaluate = () => {
    throw error;
  };
  expect(evaluateSafely(evaluate)).toEqual({
    error: { code: 'expression_limit', message: 'too much work (at /steps/0/input)' },
  });
});

it.each([
  ['Is it loud?', 'Is it loud?'],
  [7, '7'],
  [true, 'true'],
  ['a\0b\ud800c\u{1f600}', 'a\ufffdb\ufffdc\u{1f600}'],
  ['x'.repeat(1_000), 'x'.repeat(1_000)],
  ['x'.repeat(1_001), `${'x'.repeat(999)}…`],
])('the title %j of a review is %j', (value, title) => {
  expect(toTitle({ value })).toEqual({ value: title });
});

test('a title that is none fails its step, and names the place', () => {
  expect(toTitle({ error: unresolved })).toEqual({
    error: { ...unresolved, message: 'review.title: job.x does not exist' },
  });
  const message = 'review.title: a string, number or boolean is needed, not a list of 0';
  expect(toTitle({ value: [] })).toEqual({ error: { code: 'expression_unresolved', message } });
});

test('the items whose condition is false are skipped', () => {
  const isWanted = (index: number) => ({ value: index !== 1 });
  expect(judgeWhenOfItems({ type: 'go', items: 3 }, isWanted)).toEqual({ type: 'go', items: 3, kept: 'pkp' });
  expect(judgeWhenOfItems({ type: 'go', items: 1 }, isWanted)).toEqual({ type: 'go', items: 1 });
  expect(judgeWhenOfItems({ type: 'go' }, isWanted)).toEqual({ type: 'go' });
  expect(judgeWhenOfItems({ type: 'skip' }, isWanted)).toEqual({ type: 'skip' });
  expect(
    judgeWhenOfItems({ type: 'go', items: 2 }, (index) =>
      index === 1 ? { error: unresolved } : { value: true },
    ),
  ).toEqual({
    type: 'fail',
    error: { code: 'expression_unresolved', message: 'when: item 2: job.x does not exist' },
  });
});

test('an answer counts by its condition, and not where that has no value', () => {
  expect(toAnswerVerdict({ value: true })).toEqual({ counts: true });
  expect(toAnswerVerdict({ error: unresolved })).toEqual({
    counts: false,
    error: { code: 'expression_unresolved', message: 'enough.if: job.x does not exist' },
  });
});

it.each([
  [1, ['http://a'], 'behind 1 other call, on http://a'],
  [0, [], 'behind 0 other calls, on no instance'],
  [
    2,
    Array.from({ length: 11 }, (_, at) => `http://${at}`),
    /behind 2 other calls, on http:\/\/0, .*http:\/\/9;/,
  ],
])('a call that found no slot names the line: %i before it, instances %j', (ahead, endpoints, words) => {
  const { code, message, details } = toQueueTimeout(
    { capability: 'echo', waitedMs: 1_500.4, ahead, endpoints },
    '1s',
  );
  expect([code, details]).toEqual(['queue_timeout', { waited_ms: 1_500, ahead, instances: endpoints }]);
  if (typeof words !== 'string') expect(message).toMatch(words);
  else expect(message).toBe(`waited 1.5 s for a free slot of echo, ${words}; queue_timeout is 1s`);
});
