import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import {
  type AdmittedCall,
  addLength,
  aheadAt,
  type BudgetOutlook,
  countAdmitted,
  expectCost,
  expectUnits,
  type HoldTerms,
  holdFor,
  isAdmitted,
  type Lengths,
  mostAtEnd,
  mustGrow,
  mustStop,
  termsAt,
  unitsPerSecond,
  usedNano,
} from '../../src/money/holds.ts';

/** 1 USD for a million tokens of input, 15 for a million of output, as nano-USD. */
const terms: HoldTerms = { startNano: 1_000_000, unitNano: 15_000, mostNano: 62_440_000, ahead: 64 };

const anyTerms: fc.Arbitrary<HoldTerms> = fc
  .record({
    startNano: fc.integer({ min: 0, max: 10 ** 9 }),
    unitNano: fc.integer({ min: 1, max: 10 ** 6 }),
    units: fc.integer({ min: 1, max: 40_000 }),
    ahead: fc.integer({ min: 1, max: 2_000 }),
  })
  .map(({ startNano, unitNano, units, ahead }) => ({
    startNano,
    unitNano,
    ahead,
    mostNano: startNano + unitNano * units,
  }));

const anyRoom = fc.option(fc.integer({ min: 0, max: 10 ** 12 }));

function learnt(units: readonly number[]): Lengths {
  return units.reduce<Lengths>(addLength, []);
}

describe('G1, G2: the hold of a call', () => {
  it('covers what was used and what may be used before the next look, and is never above its worst case', () => {
    fc.assert(
      fc.property(anyTerms, fc.nat(40_000), anyRoom, (some, units, roomNano) => {
        const held = holdFor(some, { units, heldNano: 0, roomNano });
        expect(held).toBeLessThanOrEqual(some.mostNano);
        expect(held).toBeGreaterThanOrEqual(usedNano(some, units + some.ahead));
        expect(mustGrow(some, units, held)).toBe(false);
        expect(mustStop(some, units, held)).toBe(false);
      }),
      { numRuns: runs(500) },
    );
  });

  it('charges a call that ends early what it used and what may come unseen, however much it holds', () => {
    fc.assert(
      fc.property(anyTerms, fc.nat(40_000), anyRoom, fc.nat(2_000), (some, seen, roomNano, unseen) => {
        const held = holdFor(some, { units: seen, heldNano: 0, roomNano });
        const most = mostAtEnd(some, seen, held);
        expect(most).toBeLessThanOrEqual(held);
        expect(most).toBeGreaterThanOrEqual(usedNano(some, seen + Math.min(unseen, some.ahead)));
        expect(most).toBeLessThanOrEqual(usedNano(some, seen + some.ahead));
      }),
      { numRuns: runs(500) },
    );
  });

  it('grows before it must stop, and neither at its worst case', () => {
    fc.assert(
      fc.property(anyTerms, fc.nat(40_000), fc.nat(10 ** 10), (some, units, heldNano) => {
        if (mustStop(some, units, heldNano)) expect(mustGrow(some, units, heldNano)).toBe(true);
        expect(mustGrow(some, units, some.mostNano)).toBe(false);
      }),
      { numRuns: runs(500) },
    );
  });

  it('never shrinks', () => {
    fc.assert(
      fc.property(anyTerms, fc.nat(40_000), fc.nat(10 ** 9), anyRoom, (some, units, heldNano, roomNano) => {
        const before = Math.min(heldNano, some.mostNano);
        expect(holdFor(some, { units, heldNano: before, roomNano })).toBeGreaterThanOrEqual(before);
      }),
      { numRuns: runs(300) },
    );
  });
});

describe('G3: a piece', () => {
  it.each([
    ['there is no limit', null, terms.mostNano],
    ['there is ample room', 512 * terms.mostNano, terms.mostNano],
    ['there is room', 10_000_000_000, 1_000_000 + 19_531_250],
    ['there is none', 0, usedNano(terms, 128)],
  ])('by the room: %s', (_, roomNano, nano) => {
    expect(holdFor(terms, { units: 0, heldNano: 0, roomNano })).toBe(nano);
  });
});

describe('what a call is expected to use', () => {
  const lengths = learnt(Array.from({ length: 100 }, (_, at) => 50 + 2 * at)); // 50 to 248

  it('is close to the mean of those that have ended', () => {
    const { mean, variance } = expectUnits(lengths, 0, 4_096);
    expect(mean).toBeGreaterThan(149 * 0.95);
    expect(mean).toBeLessThan(149 * 1.05);
    expect(Math.sqrt(variance)).toBeGreaterThan(57 * 0.9);
    expect(Math.sqrt(variance)).toBeLessThan(57 * 1.1);
  });

  it('is more, the further it has come, and never less than it has used', () => {
    const means = [0, 100, 200, 240].map((used) => expectUnits(lengths, used, 4_096).mean);
    expect(means).toEqual(means.toSorted((one, other) => one - other));
    expect(means.at(-1)).toBeGreaterThan(240);
  });

  it.each([
    ['none has ended', [], 0],
    ['too few have ended', learnt(Array.from({ length: 31 }, () => 10)), 0],
    ['it has come further than any other', lengths, 500],
  ])('is the worst case: %s', (_, known, used) => {
    expect(expectUnits(known, used, 4_096)).toEqual({ mean: 4_096, variance: 0 });
  });

  it('comes as quickly as in those that have ended, if enough of them are known', () => {
    fc.assert(
      fc.property(fc.integer({ min: 32, max: 200 }), fc.integer({ min: 20, max: 5_000 }), (units, meanMs) => {
        const pace = (units * 1_000) / meanMs;
        const found = unitsPerSecond(learnt(Array(40).fill(units)), meanMs);
        expect(found).toBeGreaterThan(pace / 1.2);
        expect(found).toBeLessThan(pace * 1.2);
      }),
    );
    expect(unitsPerSecond(learnt([100, 200]), 1_000)).toBe(0);
    expect(unitsPerSecond(learnt(Array(40).fill(100)), null)).toBe(0);
  });

  it.each([
    ['64 units, where its like use 80 in 0.6 s, and all of it comes at once', 80, 20, 80 / 0.6, 67],
    ['64 units, where so many have come in less than a second', 128, 100, 0, 64],
    ['half a second of a quick one', 800, 2_000, 0, 200],
    ['half a second of its like, if they are quicker', 10, 2_000, 300, 150],
    ['256 units at most', 4_000, 2_000, 0, 256],
  ])('has ahead %s', (_, units, elapsedMs, pace, ahead) => {
    const learned = { ...terms, ahead: aheadAt(64, pace) };
    expect(termsAt(learned, units, elapsedMs).ahead).toBe(ahead);
  });

  it('is within its worst case, in money, however many have ended', () => {
    const anyLengths = fc.array(fc.nat(100_000), { maxLength: 60 }).map(learnt);
    fc.assert(
      fc.property(anyTerms, anyLengths, fc.nat(40_000), (some, known, units) => {
        const { mean, variance } = expectCost(some, known, units);
        expect(mean).toBeLessThanOrEqual(some.mostNano);
        expect(mean).toBeGreaterThanOrEqual(usedNano(some, units));
        expect(variance).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: runs(300) },
    );
  });
});

describe('G4: an admission', () => {
  const budget: BudgetOutlook = {
    limitNano: 1_000,
    spentNano: 100,
    heldNano: 200,
    expected: { mean: 500, variance: 900 },
  };

  it.each([
    ['its first piece and what it is expected to hold fit', 100, { mean: 200, variance: 1_600 }, true],
    ['its first piece has no room', 701, { mean: 100, variance: 0 }, false],
    ['three deviations of the sum have none', 100, { mean: 251, variance: 1_600 }, false],
  ])('%s', (_, first, own, isOne) => {
    expect(isAdmitted(budget, first, own)).toBe(isOne);
  });

  it.each([
    ['by their worst cases', { firstNano: 400, riskNano: 0, expected: null }, 1_000, 2],
    [
      'by their rates, of which the last needs no room',
      { firstNano: 100, riskNano: 300, expected: null },
      900,
      3,
    ],
    [
      'by what they are expected to hold',
      { firstNano: 10, riskNano: 0, expected: { mean: 100, variance: 0 } },
      1_000,
      10,
    ],
    [
      'with three deviations',
      { firstNano: 10, riskNano: 0, expected: { mean: 100, variance: 900 } },
      1_000,
      7,
    ],
    [
      'by their first pieces',
      { firstNano: 300, riskNano: 0, expected: { mean: 200, variance: 0 } },
      1_000,
      3,
    ],
    ['none', { firstNano: 10, riskNano: 0, expected: { mean: 100, variance: 0 } }, 99, 0],
    ['none without room', { firstNano: 1, riskNano: 0, expected: null }, -5, 0],
  ])('of equal calls at once: %s', (_, call, roomNano, count) => {
    expect(countAdmitted(call, roomNano)).toBe(count);
  });

  it('of equal calls at once: no fewer in more room, and all of them within it', () => {
    const anyCall: fc.Arbitrary<AdmittedCall> = fc.record({
      firstNano: fc.integer({ min: 1, max: 10 ** 6 }),
      riskNano: fc.constant(0),
      expected: fc.option(
        fc.record({ mean: fc.integer({ min: 1, max: 10 ** 6 }), variance: fc.nat(10 ** 9) }),
      ),
    });
    fc.assert(
      fc.property(anyCall, fc.nat(10 ** 9), fc.nat(10 ** 9), (call, room, more) => {
        const count = countAdmitted(call, room);
        expect(count * call.firstNano).toBeLessThanOrEqual(room);
        expect(count * (call.expected?.mean ?? 0)).toBeLessThanOrEqual(room);
        expect(countAdmitted(call, room + more)).toBeGreaterThanOrEqual(count);
      }),
      { numRuns: runs(300) },
    );
  });
});

describe('the edges of what is learnt', () => {
  const terms = { startNano: 10, unitNano: 0.4, mostNano: 100, ahead: 1 };
  const times = (count: number, units: number) =>
    Array.from({ length: count }, () => units).reduce<readonly number[]>(addLength, []);

  it('grows while half as much again as what is ahead is left, and stops when that alone is', () => {
    const call = { startNano: 0, unitNano: 10, mostNano: 10_000, ahead: 3 };
    expect([149, 150].map((held) => mustGrow(call, 10, held))).toEqual([true, false]);
    expect([129, 130].map((held) => mustStop(call, 10, held))).toEqual([true, false]);
    expect([mustGrow(call, 5_000, 10_000), mustStop(call, 5_000, 10_000)]).toEqual([false, false]);
  });

  it('takes whole nano-USD of the room', () => {
    const call = { startNano: 0, unitNano: 1, mostNano: 1_000_000, ahead: 1 };
    expect(holdFor(call, { units: 0, heldNano: 0, roomNano: 20.5 * 512 })).toBe(20);
  });

  it('counts lengths in four steps an octave, and expects the middle of a step', () => {
    expect([-5, 0, 1, 3, 7].map((units) => addLength([], units).length)).toEqual([1, 1, 5, 9, 13]);
    const { mean } = expectUnits(times(64, 100), 0, 4_096);
    expect(mean).toBeCloseTo(2 ** 6.625 - 1, 6);
    expect(unitsPerSecond(times(64, 100), 2_000)).toBeCloseTo(mean / 2, 6);
    expect(unitsPerSecond(times(64, 100), 0)).toBe(0);
  });

  it('expects eight more units, however short the calls were', () => {
    expect(expectUnits(times(64, 0), 0, 4_096).mean).toBe(8);
    expect(unitsPerSecond(times(64, 0), 1_000)).toBe(8);
  });

  it('leaves the terms of a call alone that is no quicker than its like', () => {
    expect(termsAt(terms, 1, 1)).toBe(terms);
  });

  it('expects of a call without a price by units its start, and of any other the spread of its units', () => {
    const flat = { startNano: 5, unitNano: 0, mostNano: 5, ahead: 1 };
    expect(expectCost(flat, times(64, 100), 0)).toEqual({ mean: 5, variance: 0 });
    const spread = [...Array(32).fill(100), ...Array(32).fill(300)].reduce(addLength, [] as Lengths);
    const dear = { startNano: 0, unitNano: 15_000, mostNano: 10 ** 12, ahead: 1 };
    const { variance } = expectUnits(spread, 0, 10 ** 12 / 15_000);
    expect(expectCost(dear, spread, 0).variance).toBeCloseTo(variance * 15_000 ** 2, 0);
    const long = [...Array(32).fill(250), ...Array(32).fill(5_000)].reduce(addLength, [] as Lengths);
    expect(expectCost(terms, long, 0).variance).toBe(0);
  });

  it('counts equal calls one by one, also in a room beyond exact numbers', () => {
    const least = { firstNano: 1, riskNano: 0, expected: null };
    expect([0, 1, 3, 1e18].map((room) => countAdmitted(least, room))).toEqual([
      0,
      1,
      3,
      Number.MAX_SAFE_INTEGER,
    ]);
  });

  it('rounds what was used up, to its worst case at most', () => {
    expect([usedNano(terms, 1), usedNano(terms, 5), usedNano(terms, 1_000)]).toEqual([11, 12, 100]);
  });

  it('expects from the 32nd ended call on, without a spread where all used the same', () => {
    expect(expectUnits(times(31, 50), 0, 4_096)).toEqual({ mean: 4_096, variance: 0 });
    const { mean, variance } = expectUnits(times(32, 50), 0, 4_096);
    expect(mean).toBeGreaterThan(40);
    expect(mean).toBeLessThan(60);
    expect(variance).toBeCloseTo(0, 6);
  });

  it('counts the longest calls together', () => {
    expect(addLength([], 2 ** 40)).toHaveLength(100);
  });

  it('expects no more than the worst case allows, and is sure of it', () => {
    expect(expectCost(terms, times(64, 5_000), 0)).toEqual({ mean: 100, variance: 0 });
  });
});
