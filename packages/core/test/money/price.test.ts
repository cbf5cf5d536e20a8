import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { type Price, type Settlement, settle, worstCase } from '../../src/money/reservation.ts';

const free: Price = { cost_type: 'free', rate_usd: 0 };
const perCall: Price = { cost_type: 'per_call', rate_usd: 0.25 };
const perSecond: Price = { cost_type: 'per_second', rate_usd: 0.002 };

function exact(amount: bigint) {
  return { amount, certainty: 'exact' };
}
function estimated(amount: bigint) {
  return { amount, certainty: 'estimated' };
}

/** USD with 12 decimals, as rates are stored, and milliseconds with 3; both exact as text. */
const picoRate = fc.bigInt({ min: 0n, max: 10n ** 15n });
const microseconds = fc.bigInt({ min: 0n, max: 86_400_000_000n });
function asRate(pico: bigint): number {
  return Number(`${pico}e-12`);
}
function asMs(micro: bigint): number {
  return Number(`${micro}e-3`);
}

function priceOf(cost_type: Price['cost_type'], pico: bigint): Price {
  return {
    cost_type,
    rate_usd: cost_type === 'free' ? 0 : asRate(pico),
  };
}

describe('a call above its worst case by the input', () => {
  const reserved = 10_000_000n;
  const risk = 240_000_000n;

  it.each<[name: string, price: Price, reportedUsd: unknown, durationMs: number, nano: bigint]>([
    ['costs what the instance reports', perCall, 0.1, 1, 100_000_000n],
    ['costs the rate at most', perCall, 0.3, 1, 250_000_000n],
    ['costs the reservation without a report', perCall, null, 1, 10_000_000n],
    ['costs its time', perSecond, null, 50_000, 100_000_000n],
    ['costs the declared time at most', perSecond, null, 500_000, 250_000_000n],
    ['costs less when it reports less', perCall, 0.001, 1, 1_000_000n],
  ])('%s', (_, price, reportedUsd, durationMs, nano) => {
    const facts = { durationMs, reserved, reports: reportedUsd !== null, reportedUsd };
    expect(settle(price, 'answered', { ...facts, risk })).toEqual(exact(nano));
    const capped = nano < reserved ? nano : reserved;
    expect(settle(price, 'answered', { ...facts, risk: 0n })).toEqual(exact(capped));
  });

  it('costs its reservation when it is lost', () => {
    const facts = { durationMs: 9, reserved, risk, reports: false, reportedUsd: null };
    expect(settle(perCall, 'lost', facts)).toEqual(estimated(reserved));
  });
});

describe('worstCase', () => {
  it.each([
    ['nothing when free', free, 0n],
    ['nothing at a rate of 0', { ...perSecond, rate_usd: 0 }, 0n],
    ['the price of one call', perCall, 250_000_000n],
    ['all the time that is allowed', perSecond, 600_000_000n],
  ] as const)('is %s', (_, price, nano) => {
    expect(worstCase(price, 300_000)).toBe(nano);
  });
});

describe('a price per second', () => {
  it.each([
    ['16.1 ms at 1 USD', 1, 16.1, 16_100_000n],
    ['1 ms at the smallest rate is rounded up', 1e-12, 1, 1n],
    ['a nanosecond at the smallest rate', 1e-12, 1e-6, 1n],
    ['1,000 s at the smallest rate', 1e-12, 1_000_000, 1n],
    ['3 s at 0.3 nano-USD', 3e-10, 3_000, 1n],
    ['a day at the highest rate', 10_000, 86_400_000, 864_000_000_000_000_000n],
  ])('is exact: %s', (_, rate_usd, ms, nano) => {
    expect(worstCase({ cost_type: 'per_second', rate_usd }, ms)).toBe(nano);
  });

  it('is rate times time, rounded up to the nano-USD, computed in integers', () => {
    fc.assert(
      fc.property(picoRate, microseconds, (pico, micro) => {
        const attoUsd = pico * micro;
        const nano = attoUsd / 10n ** 9n + (attoUsd % 10n ** 9n === 0n ? 0n : 1n);
        expect(worstCase(priceOf('per_second', pico), asMs(micro))).toBe(nano);
      }),
      { numRuns: runs(250) },
    );
  });
});

const reserved = 600_000_000n;
const settlements: [Settlement, Price, expected: ReturnType<typeof exact>][] = [
  ['answered', free, exact(0n)],
  ['answered', perCall, exact(250_000_000n)],
  ['answered', perSecond, exact(3_000_000n)],
  ['failed', free, exact(0n)],
  ['failed', perCall, exact(0n)],
  ['failed', perSecond, exact(3_000_000n)],
  ['not_sent', free, exact(0n)],
  ['not_sent', perCall, exact(0n)],
  ['not_sent', perSecond, exact(0n)],
  ['broken_off', free, exact(0n)],
  ['broken_off', perCall, estimated(reserved)],
  ['broken_off', perSecond, exact(3_000_000n)],
  ['lost', perCall, estimated(reserved)],
  ['lost', perSecond, estimated(reserved)],
];

describe('settle', () => {
  it.each(settlements)('%s at %j', (settlement, price, expected) => {
    const facts = { durationMs: 1_500, reserved, risk: 0n, reports: false, reportedUsd: null };
    expect(settle(price, settlement, facts)).toEqual(expected);
  });

  it.each([
    ['0.5 USD', 0.5, 500_000_000n],
    ['nothing', 0, 0n],
    ['more than was reserved', 0.61, reserved],
  ])('believes an instance that reports a cost of %s, up to the reservation', (_, reportedUsd, amount) => {
    for (const price of [perCall, perSecond]) {
      const settled = settle(price, 'answered', {
        durationMs: 1_500,
        reserved,
        risk: 0n,
        reports: true,
        reportedUsd,
      });
      expect(settled).toEqual(exact(amount));
    }
  });

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY, '0.5', null, undefined, {}])(
    'goes by the rate where an instance reports a cost of %s',
    (reportedUsd) => {
      const facts = { durationMs: 1_500, reserved, risk: 0n, reports: true, reportedUsd };
      expect(settle(perCall, 'answered', facts)).toEqual(estimated(250_000_000n));
      expect(settle(perCall, 'failed', facts)).toEqual(exact(0n));
      expect(settle(perCall, 'broken_off', facts)).toEqual(estimated(reserved));
      expect(settle(perSecond, 'failed', facts)).toEqual(exact(3_000_000n));
    },
  );

  it('costs nothing at a rate of 0, whatever the instance reports', () => {
    const facts = { durationMs: 1_500, reserved, risk: 0n, reports: true, reportedUsd: 0.5 };
    expect(settle({ ...perSecond, rate_usd: 0 }, 'answered', facts)).toEqual(exact(0n));
  });

  it.each(['failed', 'broken_off'] as const)(
    'a call that %s costs what the instance reports',
    (settlement) => {
      const facts = { durationMs: 1_500, reserved, risk: 100n, reports: true };
      expect(settle(perCall, settlement, { ...facts, reportedUsd: 0.5 })).toEqual(exact(500_000_000n));
      expect(settle(perCall, settlement, { ...facts, reportedUsd: 0 })).toEqual(exact(0n));
      expect(settle(perCall, settlement, { ...facts, reportedUsd: 9 })).toEqual(exact(reserved + 100n));
    },
  );

  it.each(['lost', 'broken_off'] as const)(
    'costs what was seen, where a call that is %s shows its use',
    (end) => {
      const most = 40_000_000n;
      const facts = { durationMs: 1_500, reserved, risk: 0n, most, reports: true, reportedUsd: null };
      expect(settle(perCall, end, facts)).toEqual(estimated(most));
      expect(settle(perCall, end, { ...facts, most: undefined })).toEqual(estimated(reserved));
      expect(settle(perCall, 'answered', facts)).toEqual(estimated(250_000_000n));
    },
  );

  it('never costs more than was reserved, and never less than nothing', () => {
    const anyPrice = fc
      .tuple(fc.constantFrom('per_second', 'per_call', 'free'), picoRate)
      .map(([type, pico]) => priceOf(type, pico));
    const anySettlement = fc.constantFrom<Settlement>('answered', 'failed', 'broken_off', 'not_sent', 'lost');
    const anyReport = fc.record({
      reports: fc.boolean(),
      reportedUsd: fc.option(fc.double({ min: 0, max: 1e9, noNaN: true })),
    });
    fc.assert(
      fc.property(anyPrice, anySettlement, microseconds, microseconds, anyReport, (...drawn) => {
        const [price, settlement, limit, took, { reports, reportedUsd }] = drawn;
        const most = worstCase(price, asMs(limit));
        const { amount } = settle(price, settlement, {
          durationMs: asMs(took),
          reserved: most,
          risk: 0n,
          reports,
          reportedUsd,
        });
        expect(amount >= 0n && amount <= most).toBe(true);
        if (price.rate_usd === 0) expect(amount).toBe(0n);
      }),
    );
  });
});
