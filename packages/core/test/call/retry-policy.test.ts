import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backoffMs, defaultRetry, mostAttempts, uncountedDelay } from '../../src/call/retry.ts';

const anySettings = fc.record({
  max: fc.integer({ min: 0, max: 100 }),
  initialMs: fc.integer({ min: 0, max: 86_400_000 }),
  factor: fc.double({ min: 1, max: 10, noNaN: true }),
  maxDelayMs: fc.integer({ min: 0, max: 86_400_000 }),
});
const unit = fc.double({ min: 0, max: 1, noNaN: true });

it('three failures are retried by default', () => {
  expect(defaultRetry.max).toBe(3);
});

it.each([
  [defaultRetry, 4],
  [{ ...defaultRetry, max: 0 }, 1],
  [{ ...defaultRetry, invalidOutput: 2 }, 6],
])('%j makes so many attempts at most: %i', (settings, attempts) => {
  expect(mostAttempts(settings)).toBe(attempts);
});

it('a wait that no count limits grows from half a second to ten', () => {
  expect([1, 2, 3, 100].map((round) => backoffMs(uncountedDelay, round, 0.5))).toEqual([
    500, 800, 1_280, 10_000,
  ]);
});

describe('backoffMs', () => {
  it.each([
    [1, 1_000],
    [2, 2_000],
    [3, 4_000],
    [6, 32_000],
    [7, 60_000],
    [100, 60_000],
  ])('after failure %i waits %i ms by default, without jitter', (failures, ms) => {
    expect(backoffMs(defaultRetry, failures, 0.5)).toBe(ms);
  });

  it('stays within 20 % of the step of its ladder', () => {
    fc.assert(
      fc.property(anySettings, fc.integer({ min: 1, max: 101 }), unit, (settings, failures, random) => {
        const { initialMs, factor, maxDelayMs } = settings;
        const middle = Math.min(initialMs * factor ** (failures - 1), maxDelayMs);
        const delay = backoffMs(settings, failures, random);
        expect(Number.isInteger(delay)).toBe(true);
        expect(delay).toBeGreaterThanOrEqual(Math.floor(middle * 0.8));
        expect(delay).toBeLessThanOrEqual(Math.min(Math.ceil(middle * 1.2), maxDelayMs));
      }),
    );
  });

  it('grows with the failures and spreads by the jitter', () => {
    fc.assert(
      fc.property(anySettings, fc.integer({ min: 1, max: 100 }), unit, (settings, failures, random) => {
        expect(backoffMs(settings, failures + 1, random)).toBeGreaterThanOrEqual(
          backoffMs(settings, failures, random),
        );
        expect(backoffMs(settings, failures, 1)).toBeGreaterThanOrEqual(
          backoffMs(settings, failures, random),
        );
      }),
    );
  });
});
