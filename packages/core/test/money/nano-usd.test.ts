import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatNanoUsd, formatUsd, fromNanoUsd, limitOf, toNanoUsd } from '../../src/money/nano-usd.ts';

const amounts: [usd: number, nano: bigint][] = [
  [0, 0n],
  [1, 1_000_000_000n],
  [0.1, 100_000_000n],
  [0.29, 290_000_000n],
  [1.1, 1_100_000_000n],
  [1e-9, 1n],
  [2.5e-7, 250n],
  [3e-9, 3n],
  [1.5e-8, 15n],
  [1.1e-7, 110n],
  [123_456.789_012_345, 123_456_789_012_345n],
  [1_000_000, 1_000_000_000_000_000n],
  [9_007_199_254_740_991, 9_007_199_254_740_991_000_000_000n],
  [1e21, 10n ** 30n],
  [1.5e300, 15n * 10n ** 308n],
];

const roundedUp: [usd: number, nano: bigint][] = [
  [1e-12, 1n],
  [5e-324, 1n],
  [1.000_000_000_1, 1_000_000_001n],
  [1.1e-9, 2n],
  [1.9e-9, 2n],
  [0.1 + 0.2, 300_000_001n], // the double is 0.30000000000000004
];

describe('toNanoUsd', () => {
  it.each(amounts)('takes %d USD by its decimal text', (usd, nano) => {
    expect(toNanoUsd(usd)).toBe(nano);
  });

  it.each(roundedUp)('rounds %d USD up to a whole nano-USD', (usd, nano) => {
    expect(toNanoUsd(usd)).toBe(nano);
  });

  it('is read back as the nearest double, also beyond whole doubles', () => {
    expect(fromNanoUsd(1_227_534_778_601_260_944n)).toBe(Number('1227534778.601260944'));
    expect(fromNanoUsd(-1_227_534_778_601_260_944n)).toBe(Number('-1227534778.601260944'));
  });

  it('adds without the errors of doubles', () => {
    expect(fromNanoUsd(toNanoUsd(0.1) + toNanoUsd(0.2))).toBe(0.3);
  });

  it('is undone by fromNanoUsd as long as a double can distinguish the amounts', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 15n }), (nano) => {
        expect(toNanoUsd(fromNanoUsd(nano))).toBe(nano);
      }),
    );
  });

  it('counts the decimal text of any double', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e9, noNaN: true }), (usd) => {
        const [mantissa = '', exponent] = usd.toExponential().split('e');
        const [integer = '', fraction = ''] = mantissa.split('.');
        const [digits, shift] = [BigInt(integer + fraction), 9 + Number(exponent) - fraction.length];
        const divisor = 10n ** BigInt(Math.max(0, -shift));
        const exact = digits * 10n ** BigInt(Math.max(0, shift));
        expect(toNanoUsd(usd)).toBe((exact + divisor - 1n) / divisor);
      }),
    );
  });

  it('is never below the amount and less than a nano-USD above it', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 15n }), (pico) => {
        const usd = Number(`${pico}e-12`);
        const over = toNanoUsd(usd) * 1_000n - pico;
        expect(over >= 0n && over < 1_000n).toBe(true);
      }),
    );
  });
});

describe('fromNanoUsd', () => {
  it.each([
    [0n, 0],
    [1n, 1e-9],
    [-1n, -1e-9],
    [-1_500_000_000n, -1.5],
    [999_999_999n, 0.999_999_999],
    [10n ** 24n, 1e15],
  ])('shows %d nano-USD as the nearest double', (nano, usd) => {
    expect(fromNanoUsd(nano)).toBe(usd);
  });
});

describe('formatNanoUsd', () => {
  it.each([
    [0n, '0'],
    [1n, '0.000000001'],
    [-1_500_000_000n, '-1.5'],
    [100_000_000_000n, '100'],
    [9_007_199_254_740_993_000_000_001n, '9007199254740993.000000001'],
  ])('writes %d nano-USD as a decimal, to the last nano', (nano, text) => {
    expect(formatNanoUsd(nano)).toBe(text);
  });
});

describe('formatUsd', () => {
  it.each([
    [0, '$0'],
    [1, '$1.00'],
    [0.999_9, '$0.9999'],
    [0.25, '$0.25'],
    [0.3, '$0.30'],
    [0.001, '$0.001'],
    [0.001_25, '$0.0013'],
    [0.000_123_456, '$0.00012'],
    [0.000_01, '$0.00001'],
    [1e-9, '$0.000000001'],
    [9.9e-10, '<$0.000000001'],
    [1.234_5, '$1.23'],
    [1.23e-9, '$0.000000001'],
    [999.994, '$999.99'],
    [1_000, '$1,000.00'],
    [1_234_567.891, '$1,234,567.89'],
    [-3, '-$3.00'],
    [-0.000_5, '-$0.0005'],
    [-1_204.5, '-$1,204.50'],
  ])('writes %d USD as %s', (usd, text) => {
    expect(formatUsd(usd)).toBe(text);
  });

  it('never shows an exponent or a false zero, and is at most half of its last digit away', () => {
    const anyNano = fc.bigInt({ min: 1n, max: 10n ** 15n });
    fc.assert(
      fc.property(anyNano, fc.integer({ min: 0, max: 14 }), (nano, cut) => {
        const usd = fromNanoUsd(nano / 10n ** BigInt(cut) + 1n);
        const text = formatUsd(usd);
        expect(text).toMatch(/^\$\d{1,3}(,\d{3})*\.\d{2,9}$/);
        const shown = Number(text.replace(/[$,]/g, ''));
        expect(shown).toBeGreaterThan(0);
        const significant = 10 ** (Math.floor(Math.log10(usd)) - 1);
        const digit = usd >= 1 ? 0.01 : Math.min(1e-4, Math.max(1e-9, significant));
        expect(Math.abs(shown - usd)).toBeLessThanOrEqual(digit * 0.501);
      }),
    );
  });
});

describe('limitOf', () => {
  it.each([
    [0, null],
    [1e-9, 1e-9],
    [5, 5],
  ])('reads a limit of %d as %s', (usd, limit) => {
    expect(limitOf(usd)).toBe(limit);
  });
});
