import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { forecastSpend, type SpendWindow } from '../../src/money/forecast.ts';

const hour = 3_600_000;
const day: SpendWindow = { opened: 0, closes: 24 * hour, spent: 6, limit: 10 };

describe('the forecast of a window', () => {
  it.each<[string, SpendWindow, number, ReturnType<typeof forecastSpend>]>([
    ['at noon', day, 12, { spent: 12, limitAt: 20 * hour }],
    ['with reserved money', { ...day, reserved: 2 }, 12, { spent: 12, limitAt: 16 * hour }],
    ['below its limit', { ...day, limit: 12 }, 12, { spent: 12, limitAt: null }],
    ['without a limit', { ...day, limit: 0 }, 6, { spent: 24, limitAt: null }],
    ['whose limit is reached', { ...day, spent: 10 }, 12, { spent: 20, limitAt: null }],
    ['whose limit is reserved', { ...day, reserved: 4 }, 12, { spent: 12, limitAt: null }],
    ['that opened at 06:00', { ...day, opened: 6 * hour }, 12, { spent: 18, limitAt: 16 * hour }],
    ['after an hour', { ...day, spent: 1 }, 1, { spent: 24, limitAt: 10 * hour }],
    ['before an hour', { ...day, spent: 1 }, 0.99, null],
    ['without spending', { ...day, spent: 0 }, 12, null],
    ['that has closed', day, 24, null],
    ['that never closes', { ...day, closes: null }, 12, { spent: null, limitAt: 20 * hour }],
    ['that never closes, before an hour', { ...day, closes: null, spent: 1 }, 0.99, null],
    [
      'that never closes, after an hour',
      { ...day, closes: null, spent: 1 },
      1,
      { spent: null, limitAt: 10 * hour },
    ],
    [
      'that never closes, at its limit',
      { ...day, closes: null, spent: 10 },
      12,
      { spent: null, limitAt: null },
    ],
    [
      'that never closes, without a limit',
      { ...day, closes: null, limit: 0 },
      12,
      { spent: null, limitAt: null },
    ],
    [
      'without a word about a limit',
      { opened: 0, closes: 24 * hour, spent: 6 },
      12,
      { spent: 12, limitAt: null },
    ],
    [
      'without a word about a limit, and little spent',
      { opened: 0, closes: 24 * hour, spent: 0.9 },
      12,
      { spent: 1.8, limitAt: null },
    ],
    ['of which little is left', { ...day, limit: 6.5 }, 12, { spent: 12, limitAt: 13 * hour }],
    [
      'whose limit falls between two milliseconds',
      { ...day, spent: 7 },
      12,
      { spent: 14, limitAt: 61_714_286 },
    ],
    ['a twenty-fourth of which has not passed', { ...day, closes: 30 * 24 * hour }, 29, null],
    [
      'a twenty-fourth of which has passed',
      { ...day, closes: 30 * 24 * hour },
      30,
      { spent: 144, limitAt: 50 * hour },
    ],
    [
      'a twenty-fourth of which has passed since it opened',
      { ...day, opened: 6 * hour },
      6.75,
      { spent: 144, limitAt: 7.25 * hour },
    ],
    [
      'whose limit is reached in almost ten years',
      { ...day, closes: null, limit: 6 + 0.5 * 24 * 3_652 },
      12,
      { spent: null, limitAt: (12 + 24 * 3_652) * hour },
    ],
    [
      'whose limit is reached in a little more than ten years',
      { ...day, closes: null, limit: 6 + 0.5 * (24 * 3_653 + 12) },
      12,
      { spent: null, limitAt: null },
    ],
    [
      'whose limit is reached in a thousand years',
      { ...day, closes: null, limit: 6e6 },
      12,
      { spent: null, limitAt: null },
    ],
  ])('%s', (_, window, hours, forecast) => {
    expect(forecastSpend(window, hours * hour)).toEqual(forecast);
  });

  it('is never below what was spent, and reaches the limit within the window if it passes it', () => {
    const some = fc.record({
      opened: fc.integer({ min: 0, max: 1e12 }),
      length: fc.integer({ min: 60_000, max: 31 * 24 * hour }),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
      spent: fc.integer({ min: 0, max: 1e9 }),
      limit: fc.integer({ min: 1, max: 1e9 }),
    });
    fc.assert(
      fc.property(some, ({ opened, length, share, spent, limit }) => {
        const now = opened + Math.floor(length * share);
        const closes = opened + length;
        const forecast = forecastSpend({ opened, closes, spent, limit }, now);
        if (forecast === null) return;
        expect(forecast.spent).toBeGreaterThanOrEqual(spent);
        if (forecast.limitAt === null) return;
        expect(forecast.limitAt).toBeGreaterThanOrEqual(now);
        expect(forecast.limitAt).toBeLessThanOrEqual(closes);
        expect(forecast.spent).toBeGreaterThanOrEqual(limit * 0.999);
      }),
      { numRuns: runs(200) },
    );
  });
});
