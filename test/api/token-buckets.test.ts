import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createTokenBuckets } from '../../src/api/limits.ts';

test('a burst at once, then as many as the rate allows, for each holder', () => {
  let now = 0;
  const { take } = createTokenBuckets({ perSecond: 2, burst: 3 }, () => now);
  expect([take('a'), take('a'), take('a'), take('a'), take('b')]).toEqual([0, 0, 0, 0.5, 0]);
  now = 400;
  expect(take('a')).toBeCloseTo(0.1);
  now = 500;
  expect([take('a'), take('a')]).toEqual([0, 0.5]);
  now = 1_000_000;
  expect([take('a'), take('a'), take('a'), take('a')]).toEqual([0, 0, 0, 0.5]);
});

test('at any times, a bucket allows no more than burst and rate, and allows a caller that waits as asked', () => {
  const pauses = fc.array(fc.nat(700), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(
      pauses,
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: 1, max: 20 }),
      (all, perSecond, burst) => {
        let now = 0;
        let taken = 0;
        const { take } = createTokenBuckets({ perSecond, burst }, () => now);
        for (const pause of all) {
          now += pause;
          const wait = take('a');
          if (wait === 0) taken++;
          else {
            now += Math.ceil(wait * 1_000) + 1;
            expect(take('a')).toBe(0);
            taken++;
          }
          expect(taken).toBeLessThanOrEqual(burst + (now / 1_000) * perSecond + 1e-6);
        }
      },
    ),
  );
});
