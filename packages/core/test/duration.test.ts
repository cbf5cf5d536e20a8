import fc from 'fast-check';
import { expect, it } from 'vitest';
import { formatDuration as formatForTerminal } from '../../../src/cli/render/formats.ts';
import { runs } from '../../../test/support/runs.ts';
import { readDuration } from '../src/contracts/duration-text.ts';
import { Duration } from '../src/contracts/primitives.ts';
import { formatDuration, parseDuration } from '../src/duration.ts';

it.each([
  ['500ms', 500],
  ['30s', 30_000],
  ['1.5s', 1_500],
  ['5m', 300_000],
  ['2h', 7_200_000],
  ['1d', 86_400_000],
  ['0.1ms', 0],
  ['1w', 604_800_000],
  ['1h30m', 5_400_000],
  ['1h 30min', 5_400_000],
  ['1m04s', 64_000],
  ['1d2h3m4s5ms', 93_784_005],
  ['1.5h30m', 7_200_000],
  ['30m1h', 5_400_000],
  ['PT30S', 30_000],
  ['PT0.5S', 500],
  ['PT1H30M', 5_400_000],
  ['PT1H5S', 3_605_000],
  ['P1DT12H', 129_600_000],
  ['P2D', 172_800_000],
  ['P1W', 604_800_000],
])('reads %s as %d ms', (text, expected) => {
  expect(parseDuration(text)).toBe(expected);
});

it.each([
  ...[
    '',
    '5',
    's',
    '-1s',
    ' 1s',
    '1s ',
    '1  s',
    '.5s',
    '1.s',
    '1e3s',
    '1h,30m',
    '1h and 30m',
    '1S',
    '1M',
    '1y',
  ],
  ...[
    'P',
    'PT',
    'P1',
    'P1M',
    'P1Y',
    'P1DT',
    'PT1D',
    'PT1M1H',
    'PT1H1H',
    'P1W2D',
    'pt30s',
    'PT30s',
    'PT30S 1s',
    '1s\n',
  ],
])('refuses "%s"', (text) => {
  expect(() => parseDuration(text)).toThrow(RangeError);
});

/** Lengths of every size, also fractions of a millisecond. */
const anyLength = fc.oneof(
  fc.double({ min: 0, max: 100, noNaN: true }),
  ...[1_000, 60_000, 3_600_000, 86_400_000, 1e11].map((max) => fc.integer({ min: 0, max })),
);

it.each([
  ['people read', formatDuration],
  ['a terminal shows', formatForTerminal],
])('reads what %s', (_, format) => {
  fc.assert(
    fc.property(anyLength, (ms) => {
      const read = parseDuration(format(ms));
      expect(Math.abs(read - ms)).toBeLessThanOrEqual(Math.max(1, 0.1 * ms)); // what is shown is rounded
      if (ms >= 100) expect(format(read)).toBe(format(ms));
    }),
    { numRuns: runs(300) },
  );
});

it('reads a text if, and only if, the contract accepts it', () => {
  const sign = fc.constantFrom(...'0123456789.', ...' PTWDHMSmshdwin-');
  fc.assert(
    fc.property(fc.string({ unit: sign, maxLength: 8 }), (text) => {
      expect([text, readDuration(text) !== undefined]).toEqual([text, Duration.safeParse(text).success]);
    }),
    { numRuns: runs(1_000) },
  );
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
