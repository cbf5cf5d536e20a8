import { expect, it, test } from 'vitest';
import { callTimeOf, hasTimeFor, outOfTime } from '../../../src/core/call/retry.ts';

it.each([
  [60_000, 59_500],
  [5_000, 4_500],
  [1_000, 900],
  [0, 0],
])('of %d ms a call has %d: its end is told in a tenth of it, or half a second', (totalMs, callMs) => {
  expect(callTimeOf(totalMs)).toBe(callMs);
});

it.each([
  [0, 101, true],
  [0, 100, false],
  [1_000, 1_101, true],
  [1_000, 1_100, false],
])('after a pause of %d ms with %d left, whether there is another call: %s', (delayMs, leftMs, hasTime) => {
  expect(hasTimeFor(delayMs, leftMs)).toBe(hasTime);
});

test('a step that is out of time says how much it had, and what was seen last', () => {
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
