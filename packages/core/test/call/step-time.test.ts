import { expect, it, test } from 'vitest';
import { hasTimeFor, outOfTime, timeOf } from '../../src/call/retry.ts';

it.each([
  [300_000, 3_600_000, { timeoutMs: 300_000, leftMs: null }],
  [300_000, 300_000, { timeoutMs: 300_000, leftMs: null }],
  [300_000, 997.4, { timeoutMs: 998, leftMs: 997.4 }],
  [300_000, 0, { timeoutMs: 1, leftMs: 0 }],
])('an attempt of %d ms, with %d left for the step, has %o', (timeoutMs, leftMs, time) => {
  expect(timeOf(timeoutMs, leftMs)).toEqual(time);
});

it.each([
  [0, 101, true],
  [0, 100, false],
  [1_000, 1_101, true],
  [1_000, 1_100, false],
])('after a pause of %d ms with %d left, whether there is another call: %s', (delayMs, leftMs, hasTime) => {
  expect(hasTimeFor(delayMs, leftMs)).toBe(hasTime);
});

test('a step that is out of time reports its limit, and the last error', () => {
  const last = { code: 'overloaded', message: 'HTTP 503' };
  expect(outOfTime(last, 5_000)).toStrictEqual({
    code: 'step_timeout',
    message: 'not done within 5.0 s; last: HTTP 503',
    details: { code: 'overloaded' },
  });
  expect(outOfTime({ ...last, details: { a: 1 } }, 5_000).details).toEqual({
    code: 'overloaded',
    last: { a: 1 },
  });
});
