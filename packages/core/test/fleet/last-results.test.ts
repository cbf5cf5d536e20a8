import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type LastResult, sumResults } from '../../src/fleet/last-results.ts';

function aResult(isGood: boolean | null, durationMs: number | null, costUsd: number): LastResult {
  return { isGood, durationMs, costUsd };
}

test('sums count what has ended; medians are of what succeeded', () => {
  const results = [
    aResult(true, 10, 0.01),
    aResult(true, 40, 0.03),
    aResult(false, 9_000, 5),
    aResult(null, null, 7),
    aResult(true, 20, 0),
  ];
  expect(sumResults(results)).toEqual({ ended: 4, succeeded: 3, p50_ms: 20, p50_usd: 0.01 });
});

test.each<[readonly LastResult[], number | null]>([
  [[], null],
  [[aResult(false, 5, 1)], null],
  [[aResult(true, null, 1)], null],
  [[aResult(true, 10, 1), aResult(true, 20, 1)], 15],
])('the median time of %j is %s', (results, ms) => {
  expect(sumResults(results).p50_ms).toBe(ms);
});

test('half of the times are not above the median, and half not below', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 1_000 }), { minLength: 1 }), (times) => {
      const { p50_ms } = sumResults(times.map((ms) => aResult(true, ms, 0)));
      const median = p50_ms ?? Number.NaN;
      const half = times.length / 2;
      return (
        times.filter((ms) => ms <= median).length >= half && times.filter((ms) => ms >= median).length >= half
      );
    }),
  );
});
