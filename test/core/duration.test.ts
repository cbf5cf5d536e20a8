import { expect, it } from 'vitest';
import { formatDuration, parseDuration } from '../../src/core/duration.ts';

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

it.each([
  [0, '0 ms'],
  [13.24, '13.2 ms'],
  [340.2, '340 ms'],
  [2_733, '2.7 s'],
  [59_999, '59 s'],
  [130_000, '2 min 10 s'],
  [900_000, '15 min'],
  [51 * 3_600_000, '2 d 3 h'],
])('states %d ms as %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});
