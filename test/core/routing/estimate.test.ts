import { describe, expect, it } from 'vitest';
import { enforcedTimeout, priorDuration, worstCaseUsd } from '../../../src/core/routing/estimate.ts';
import type { InstanceSnapshot } from '../../../src/core/routing/types.ts';
import { anInstance } from './a-snapshot.ts';

type Price = Partial<InstanceSnapshot>;
function perSecond(rate_usd: number): Price {
  return { cost_type: 'per_second', rate_usd };
}
function perCall(rate_usd: number): Price {
  return { cost_type: 'per_call', rate_usd };
}

describe('estimates', () => {
  it('assume the median duration of the others, and 30 s when there is none', () => {
    const known = [9_000, null, 2_000, 4_000].map((duration_ms) => ({ duration_ms }));
    expect([priorDuration(known), priorDuration([{ duration_ms: null }])]).toEqual([4_000, 30_000]);
  });

  it('turn a ceiling on a rate per second into a limit on time', () => {
    const limits = { timeoutMs: 60_000, ceilingUsd: 0.25 };
    const timeouts = [perSecond(0.01), perSecond(0.001), perCall(0.01), perSecond(0)].map((price) =>
      enforcedTimeout(anInstance('a', price), limits),
    );
    expect(timeouts).toEqual([25_000, 60_000, 60_000, 60_000]);
  });

  it('reserve the price of the longest call, rounded up to a nano-USD and not by what doubles lack', () => {
    const limits = { timeoutMs: 300_000, ceilingUsd: null };
    const prices = [perSecond(0.1), perSecond(1e-12), perCall(0.3), perCall(1.5e-9), perSecond(0)];
    expect(prices.map((price) => worstCaseUsd(anInstance('a', price), limits))).toEqual([
      ...[30, 1e-9, 0.3, 2e-9, 0],
    ]);
  });
});
