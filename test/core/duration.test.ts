import { expect, it } from 'vitest';
import { parseDuration } from '../../src/core/duration.ts';

it.each([
  ['500ms', 500],
  ['30s', 30_000],
  ['1.5s', 1_500],
  ['5m', 300_000],
  ['2h', 7_200_000],
  ['1d', 86_400_000],
  ['0.1ms', 0],
])('reads %s as %d ms', (text, expected) => {
  expect(parseDuration(text)).toBe(expected);
});

it.each(['', '5', 's', '-1s', '1 s', '1s ', '1w', '.5s', '1e3s'])('refuses "%s"', (text) => {
  expect(() => parseDuration(text)).toThrow(RangeError);
});
