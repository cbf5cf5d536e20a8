import { expect, it, test } from 'vitest';
import { averageWeights, noCalls, observeCall } from '../../src/routing/observed-calls.ts';

test('a success counts with its duration, a failure without, and what was before decays', () => {
  const once = observeCall(noCalls, { durationMs: 100, costUsd: 2, ok: true });
  expect(once).toEqual({ durations: [100], costs: [2], lengths: [], successes: 1, failures: 0, decay: 0.98 });
  const twice = observeCall(once, { durationMs: 50, costUsd: 1, ok: false });
  expect(twice).toEqual({
    durations: [100],
    costs: [2],
    lengths: [],
    successes: 0.98,
    failures: 1,
    decay: 0.98 * 0.98,
  });
  const lighter = observeCall(twice, { durationMs: 50, costUsd: 1, ok: false, weight: 0.25 });
  expect(lighter.failures).toBe(0.98 + 0.25);
});

test('the units of a call that succeeded are counted, where they are known', () => {
  const call = { durationMs: 1, costUsd: 1, ok: true };
  const once = observeCall(noCalls, { ...call, units: 0 });
  expect(once.lengths).toEqual([1]);
  expect(observeCall(once, { ...call, units: 0, ok: false }).lengths).toEqual([1]);
  expect(observeCall(once, call).lengths).toEqual([1]);
});

test('the last 50 durations and costs are kept, in order', () => {
  let seen = noCalls;
  for (let at = 1; at <= 52; at++) seen = observeCall(seen, { durationMs: at, costUsd: at, ok: true });
  const last = Array.from({ length: 50 }, (_, at) => at + 3);
  expect([seen.durations, seen.costs]).toEqual([last, last]);
});

it.each([0, 1, 2, 10])('weights of %d observations and of what was before are 1 together', (count) => {
  const { kept, weights } = averageWeights(count);
  expect(weights.length).toBe(count);
  expect(weights.reduce((sum, weight) => sum + weight, kept)).toBeCloseTo(1, 12);
});

test('a later observation weighs more', () => {
  const { kept, weights } = averageWeights(2);
  expect(kept).toBeCloseTo(0.64, 12);
  expect(weights.map((weight) => weight.toFixed(6))).toEqual(['0.160000', '0.200000']);
});
