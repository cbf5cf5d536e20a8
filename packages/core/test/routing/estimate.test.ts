import { describe, expect, it } from 'vitest';
import {
  enforcedTimeout,
  expectedCost,
  expectedSuccess,
  expectedWait,
  keyedWait,
  lineMs,
  longCallMs,
  lowestCeiling,
  priorDuration,
  reservationOf,
  reservedUsd,
  worstCaseUsd,
} from '../../src/routing/estimate.ts';
import type { InstanceSnapshot, Residency } from '../../src/routing/types.ts';
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
    const known = [9_000, null, null, 2_000, 5_000, 1_000, 4_000, null].map((duration_ms) => ({
      duration_ms,
    }));
    expect([priorDuration(known), priorDuration([{ duration_ms: null }])]).toEqual([4_000, 30_000]);
  });

  it('turn a ceiling on a rate per second into a limit on time', () => {
    const limits = { timeoutMs: 60_000, ceilingUsd: 0.25 };
    const timeouts = [perSecond(0.01), perSecond(0.001), perCall(0.01), perSecond(0)].map((price) =>
      enforcedTimeout(anInstance('a', price), limits),
    );
    expect(timeouts).toEqual([25_000, 60_000, 60_000, 60_000]);
  });

  it('reserve the price of the longest call, rounded up to a nano-USD, without errors of doubles', () => {
    const limits = { timeoutMs: 300_000, ceilingUsd: null };
    const prices = [perSecond(0.1), perSecond(1e-12), perCall(0.3), perCall(1.5e-9), perSecond(0)];
    expect(prices.map((price) => worstCaseUsd(anInstance('a', price), limits))).toEqual([
      ...[30, 1e-9, 0.3, 2e-9, 0],
    ]);
  });

  it('limit time by the ceiling of the run too, and reserve the expected cost of a call beyond its run', () => {
    const limits = { timeoutMs: 300_000, ceilingUsd: null, runCeilingUsd: 0.5 };
    const instance = anInstance('a', perSecond(0.1));
    expect(enforcedTimeout(instance, limits)).toBe(5_000);
    const reserved = (costUsd: number, price: Price = perSecond(0.1)) => {
      const of = [anInstance('a', price), limits, costUsd] as const;
      return [reservedUsd(...of), reservationOf(...of).reserved];
    };
    expect(reserved(0.2)).toEqual([0.5, 500_000_000n]);
    expect(reserved(0.5)).toEqual([0.5, 500_000_000n]);
    expect(reserved(0.8)).toEqual([0.8, 800_000_000n]);
    expect(reserved(2, perCall(2))).toEqual([2, 2_000_000_000n]);
    expect(reservationOf(instance, limits, 0.8).risk).toBe(0n);
    const short = { ...limits, timeoutMs: 1_000 };
    expect(reservedUsd(instance, short, 0.4)).toBe(0.1); // its time is short, not the money of its run
    expect(reservationOf(instance, short, 0.4)).toEqual({ reserved: 100_000_000n, risk: 0n });
  });

  it.each([
    [null, null, null],
    [1, null, 1],
    [null, 2, 2],
    [1, 2, 1],
    [2, 1, 1],
  ])('take the lower of the ceilings %s and %s', (one, other, lowest) => {
    expect(lowestCeiling(one, other)).toBe(lowest);
  });

  it('never leave a call without time, however low its ceiling', () => {
    const instance = anInstance('a', perSecond(0.3));
    expect(enforcedTimeout(instance, { timeoutMs: 60_000, ceilingUsd: 0 })).toBe(1);
    expect(enforcedTimeout(instance, { timeoutMs: 60_000, ceilingUsd: 0.1 })).toBe(333);
    expect(enforcedTimeout(instance, { timeoutMs: 60_000, ceilingUsd: null })).toBe(60_000);
  });

  it.each([
    [0, 10_000],
    [1, 10_000],
    [2, 20_000],
    [3, 20_000],
    [4, 30_000],
  ])('wait behind %d calls on two slots for %d ms', (depth, waitMs) => {
    expect(expectedWait(anInstance('a', { max_concurrency: 2 }), depth, 1)).toBe(waitMs);
  });

  it.each([
    ['with room', { host_calls: 2, host_room: 1 }, 0, 10_000],
    ['that is full', { host_calls: 2, host_room: 0 }, 0, 20_000],
    ['that bears fewer than the instance', { host_calls: 2, host_room: 0 }, 4, 30_000],
    ['that bears more', { host_calls: 9, host_room: 5 }, 1, 10_000],
  ])('wait for a host %s', (_, host, depth, waitMs) => {
    const instance = anInstance('a', { max_concurrency: 4, host: 'gpu-1', ...host });
    expect(expectedWait(instance, depth, 1)).toBe(waitMs);
  });

  it('wait as long as others take for one that was never called', () => {
    expect(expectedWait(anInstance('a', { duration_ms: null }), 0, 7_000)).toBe(7_000);
  });

  it('take a long call for what is paid by the second', () => {
    expect([longCallMs(1_000, 100), longCallMs(1_000, null)]).toEqual([1_160, 1_000]);
    const instance = anInstance('a', { ...perSecond(0.5), duration_ms: 1_000, deviation_ms: 100 });
    expect(expectedCost(instance, { priorMs: 9_000 })).toBeCloseTo(0.58, 12);
    expect(expectedCost({ ...instance, duration_ms: null, deviation_ms: null }, { priorMs: 9_000 })).toBe(
      4.5,
    );
    expect(expectedCost(anInstance('a', perCall(0.3)), { priorMs: 9_000 })).toBe(0.3);
    expect(expectedCost(anInstance('a'), { priorMs: 9_000 })).toBe(0);
  });

  it.each([
    [0, 0, 0.9],
    [9, 1, 0.9],
    [90, 1, 0.9],
    [95, 10, 0.9],
    [8, 1, 17 / 19],
    [0, 1, 9 / 11],
    [1, 10, 10 / 21],
    [0, 170, 0.05],
    [0, 1_000, 0.05],
  ])('of %d successes and %d failures expect a success of %d', (success_count, failure_count, expected) => {
    expect(expectedSuccess({ success_count, failure_count })).toBeCloseTo(expected, 12);
  });
});

describe('the time of a call with a key', () => {
  const found: Residency = {
    key: 'sdxl',
    isResident: false,
    isListed: false,
    isLearnt: true,
    warmMs: 10_000,
    loadMs: 5_000,
    leftMs: 3_000,
    pace: 1,
    usedAtMs: null,
  };

  it.each<[string, Partial<InstanceSnapshot>, waiting: number, expected: number]>([
    ['is what the call before it needs', { held: 1 }, 0, 3_000],
    ['and those that wait', { held: 1 }, 2, 23_000],
    [
      'and those of others, shared by its slots',
      { held: 2, max_concurrency: 2, reported_extra: 1 },
      2,
      18_000,
    ],
    ['or by those of its host', { held: 2, max_concurrency: 4, host_calls: 2, host_room: 0 }, 1, 15_000],
    [
      'is a call of others, where these fill its host',
      { max_concurrency: 2, held: 1, host_room: 0 },
      0,
      10_000,
    ],
    ['is its own call, where it fills itself', { max_concurrency: 2, held: 2, host_room: 0 }, 0, 3_000],
    ['and where its host has room', { max_concurrency: 2, held: 1, host_room: 1 }, 0, 3_000],
    ['and without a host', { max_concurrency: 2, held: 1 }, 0, 3_000],
  ])('until a slot is free %s', (_, box, waiting, expected) => {
    expect(lineMs(anInstance('a', box), found, waiting)).toBe(expected);
  });

  it('that is longer than a call of others is its own', () => {
    const full = anInstance('a', { max_concurrency: 2, held: 1, host_room: 0 });
    expect(lineMs(full, { ...found, leftMs: 12_000 }, 0)).toBe(12_000);
  });

  it('is the load and the call, after the calls before it', () => {
    const box = anInstance('a', { max_concurrency: 2, held: 1, reported_extra: 2 });
    expect(keyedWait(box, found, null)).toBe(25_000);
    expect(keyedWait(box, { ...found, isResident: true }, null)).toBe(20_000);
    expect(keyedWait({ ...box, reported_extra: 0 }, found, null)).toBe(15_000);
    expect(keyedWait({ ...box, reported_extra: 0 }, found, 0)).toBe(18_000);
  });
});
