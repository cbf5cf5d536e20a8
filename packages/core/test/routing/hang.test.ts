import fc from 'fast-check';
import { expect, it } from 'vitest';
import { weightOfTimeout } from '../../src/routing/observed-calls.ts';

const cases: [
  rule: string,
  timeoutMs: number,
  duration_ms: number | null,
  priorMs: number,
  weight: number,
][] = [
  ['four times its average is a fault', 400, 100, 30_000, 1],
  ['and so is more', 300_000, 100, 30_000, 1],
  ['a tenth of that is a tenth of a fault', 40, 100, 30_000, 0.1],
  ['an instance that is known to be slow is given its time', 60_000, 150_000, 100, 0.1],
  ['of an unknown one the others show how long is long', 400, null, 100, 1],
  ['at most 30 s', 30_000, null, 30_000, 1],
  ['and when nothing is known at all, a part of that', 5_000, null, 30_000, 1 / 6],
];

it.each(cases)('%s', (_, timeoutMs, duration_ms, priorMs, weight) => {
  expect(weightOfTimeout(timeoutMs, { duration_ms }, priorMs)).toBeCloseTo(weight, 10);
});

it('is more than nothing and at most a fault, and grows with the time that was given', () => {
  const time = fc.integer({ min: 1, max: 86_400_000 });
  fc.assert(
    fc.property(time, time, fc.option(time), time, (one, more, duration_ms, priorMs) => {
      const weight = weightOfTimeout(one, { duration_ms }, priorMs);
      expect(weight).toBeGreaterThan(0);
      expect(weight).toBeLessThanOrEqual(1);
      expect(weightOfTimeout(one + more, { duration_ms }, priorMs)).toBeGreaterThanOrEqual(weight);
    }),
  );
});
