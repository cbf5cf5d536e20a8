import { describe, expect, it } from 'vitest';
import { findPriceRange } from '../../src/routing/price-range.ts';
import { anInstance, aPaid, aRequest, now } from './a-snapshot.ts';

describe('what a call may cost', () => {
  it('is from the cheapest that could take it to the largest reservation', () => {
    const perSecond = aPaid('s', 0.001, { cost_type: 'per_second', duration_ms: 2_000 });
    const fleet = [aPaid('a', 0.5), perSecond, aPaid('down', 0.0001, { state: 'down' })];
    expect(findPriceRange(fleet, aRequest({ timeoutMs: 60_000 }))).toEqual({
      leastUsd: 0.002,
      likelyUsd: 0.002,
      mostNano: 500_000_000n,
    });
    expect(findPriceRange(fleet, aRequest({ timeoutMs: 600_000 }))?.mostNano).toBe(600_000_000n);
    expect(findPriceRange([...fleet, anInstance('free')], aRequest())?.leastUsd).toBe(0);
  });

  it('is as much as one may reserve that comes back before the call is made', () => {
    const fleet = [aPaid('cheap', 0.1), aPaid('down', 0.9, { state: 'down' })];
    expect(findPriceRange(fleet, aRequest())).toEqual({
      leastUsd: 0.1,
      likelyUsd: 0.1,
      mostNano: 900_000_000n,
    });
  });

  it('is never above the ceiling', () => {
    const fleet = [aPaid('a', 0.5), aPaid('s', 0.001, { cost_type: 'per_second', duration_ms: 2_000 })];
    expect(findPriceRange(fleet, aRequest({ ceilingUsd: 0.1 }))).toEqual({
      leastUsd: 0.002,
      likelyUsd: 0.002,
      mostNano: 100_000_000n,
    });
  });

  it('is that of instances that may come back when none could accept it now', () => {
    const resting = aPaid('resting', 0.2, { breaker_until_ms: now + 5_000 });
    const gone = aPaid('gone', 0.1, { state: 'deregistered' });
    expect(findPriceRange([resting, gone], aRequest())).toEqual({
      leastUsd: 0.2,
      likelyUsd: 0.2,
      mostNano: 200_000_000n,
    });
    expect(findPriceRange([gone], aRequest())).toBeNull();
    expect(findPriceRange([aPaid('dear', 0.5)], aRequest({ headroomUsd: 0.1 }))).toEqual({
      leastUsd: 0.5,
      likelyUsd: 0.5,
      mostNano: 500_000_000n,
    });
  });

  it('of instances that report their cost is nothing at least, and likely the cost of their calls so far', () => {
    const reported = { settle: 'reported' } as const;
    const fleet = [
      aPaid('known', 0.1, { ...reported, mean_cost_usd: 0.005 }),
      aPaid('never called', 0.2, reported),
    ];
    const most = 200_000_000n;
    expect(findPriceRange(fleet, aRequest())).toEqual({ leastUsd: 0, likelyUsd: 0.005, mostNano: most });
    expect(findPriceRange(fleet.slice(1), aRequest())).toEqual({
      leastUsd: 0,
      likelyUsd: 0.2,
      mostNano: most,
    });
    const cheaper = [aPaid('now cheaper', 0.1, { ...reported, mean_cost_usd: 5 })];
    expect(findPriceRange(cheaper, aRequest())?.likelyUsd).toBe(0.1);
  });
});
