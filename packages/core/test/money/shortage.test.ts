import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fromNanoUsd, toNanoUsd } from '../../src/money/nano-usd.ts';
import {
  describeFigures,
  hasRoomFor,
  headroomOf,
  limitFor,
  type Shortage,
  toRefusal,
} from '../../src/money/reservation.ts';

const usd = 1_000_000_000n;

function aBudget(budget: Partial<Omit<Shortage, 'scope' | 'runId' | 'resetsAt'>> = {}) {
  return { limit: 5n * usd, spent: 3n * usd, reserved: 1n * usd, ...budget };
}

function aShortage(shortage: Partial<Shortage> = {}): Shortage {
  return {
    ...aBudget(),
    scope: 'project',
    runId: null,
    resetsAt: '2026-01-02T00:00:00Z',
    ...shortage,
  };
}

describe('a budget', () => {
  it.each([
    ['what is neither spent nor reserved', aBudget(), 1n * usd],
    ['a last nano-USD', aBudget({ spent: 4n * usd - 1n }), 1n],
    ['nothing when all is spent or reserved', aBudget({ reserved: 2n * usd }), 0n],
    ['nothing when the limit was lowered below that', aBudget({ limit: 2n * usd }), 0n],
  ])('leaves %s', (_, budget, nano) => {
    expect(headroomOf(budget)).toBe(nano);
  });

  it.each([
    ['exactly what is left', aBudget(), 1n * usd, true],
    ['no nano-USD more', aBudget(), 1n * usd + 1n, false],
    ['a nano-USD where nothing is left: no', aBudget({ reserved: 2n * usd }), 1n, false],
    ['nothing, however much was overspent', aBudget({ limit: 0n }), 0n, true],
  ])('has room for %s', (_, budget, nano, hasRoom) => {
    expect(hasRoomFor(budget, nano)).toBe(hasRoom);
  });

  it('without a limit has room for anything', () => {
    expect(hasRoomFor({ limit: null, spent: 10n ** 18n, reserved: 0n }, 10n ** 18n)).toBe(true);
  });
});

describe('a refusal', () => {
  it('shows the figures of a project, and when they change', () => {
    expect(toRefusal(aShortage(), 1.5)).toEqual({
      scope: 'project',
      limit_usd: 5,
      spent_usd: 3,
      reserved_usd: 1,
      minimum_usd: 1.5,
      resets_at: '2026-01-02T00:00:00Z',
    });
  });

  it('by a run names that run', () => {
    expect(toRefusal(aShortage({ scope: 'run', runId: 'run_1', resetsAt: null }), 1.5)).toEqual({
      scope: 'run',
      run_id: 'run_1',
      limit_usd: 5,
      spent_usd: 3,
      reserved_usd: 1,
      minimum_usd: 1.5,
      resets_at: null,
    });
  });

  it('by the day of all projects shows no figures', () => {
    const refusal = toRefusal(aShortage({ scope: 'global' }), 1.5);
    expect(refusal).toEqual({ scope: 'global', minimum_usd: 1.5, resets_at: '2026-01-02T00:00:00Z' });
    expect(describeFigures(refusal)).toBe('');
  });

  it('is described with its figures', () => {
    expect(describeFigures(toRefusal(aShortage(), 1.5))).toBe(': limit 5 USD, spent 3, reserved 1');
  });
});

describe('the lowest limit for some calls', () => {
  const nano = fc.bigInt({ min: 0n, max: 10n ** 12n });
  const price = fc.bigInt({ min: 1n, max: 10n ** 12n });

  it('has room for all of them, and a nano-USD less has not', () => {
    fc.assert(
      fc.property(nano, nano, price, fc.integer({ min: 1, max: 100 }), (spent, reserved, minimum, calls) => {
        const figures = { spent_usd: fromNanoUsd(spent), reserved_usd: fromNanoUsd(reserved) };
        const limit = toNanoUsd(Number(limitFor({ ...figures, minimum_usd: fromNanoUsd(minimum) }, calls)));
        const before = { spent, reserved: reserved + BigInt(calls - 1) * minimum };
        expect(hasRoomFor({ limit, ...before }, minimum)).toBe(true);
        expect(hasRoomFor({ limit: limit - 1n, ...before }, minimum)).toBe(false);
      }),
    );
  });

  it.each([[{ spent_usd: 3, minimum_usd: 1 }], [{ reserved_usd: 3, minimum_usd: 1 }], [{ minimum_usd: 1 }]])(
    'is unknown where figures are hidden: %j',
    (figures) => {
      expect(limitFor(figures, 1)).toBeNull();
    },
  );
});
