import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { useDatabase } from '../support/database.ts';
import { doWithoutMoney } from './do-without-money.ts';
import { breakFreeInstance, killFreeInstance } from './lose-the-free-instance.ts';
import { raceForMoney } from './race-for-money.ts';
import { reviveEvictedInstance } from './revive-an-evicted-instance.ts';
import { shareIdleInstance } from './share-an-idle-instance.ts';
import { spendLimit } from './spend-a-limit.ts';
import { openStage, type Stage } from './stage.ts';

const { url } = useDatabase();
let stage: Stage;

beforeAll(async () => {
  stage = await openStage({
    databaseUrl: url,
    packageFolder: inject('packageFolder'),
    routers: 4,
    leaseMs: 2_000,
  });
});
afterAll(() => stage?.close());

function total(ends: Readonly<Record<string, number>>): number {
  return Object.values(ends).reduce((sum, count) => sum + count, 0);
}

test('of 1,000 calls over four routers exactly as many succeed as the limit has units', async () => {
  const { ends, account } = await spendLimit(stage, { calls: 1_000, units: 250 });
  const { budget_exhausted = 0, budget_reserved = 0, ...others } = ends;
  expect(others).toEqual({ succeeded: 250 });
  expect(budget_exhausted + budget_reserved).toBe(750);
  expect(account).toEqual({ limitUsd: 250, spentUsd: 250, reservedUsd: 0 });
  expect(await stage.findViolations()).toEqual([]);
});

test('four routers with 100 calls at once never put two on the one free idle instance', async () => {
  const { ends, most, free } = await shareIdleInstance(stage, { calls: 100 });
  expect(ends).toEqual({ succeeded: 100 });
  expect(most).toBe(1);
  expect(free).toBeGreaterThan(0);
  expect(await stage.findViolations()).toEqual([]);
});

test('the free instance killed at work costs no caller a failure, and is used again after its restart', async () => {
  const { ends, kills } = await killFreeInstance(stage, { times: 1 });
  expect(ends).toEqual({ succeeded: total(ends) });
  expect(kills).toBe(1);
  expect(await stage.findViolations()).toEqual([]);
}, 90_000);

test('an instance whose breaker opened comes back through one trial at a time', async () => {
  const { ends, trials } = await breakFreeInstance(stage);
  expect(ends).toEqual({ succeeded: total(ends) });
  expect(trials).toBeGreaterThan(0);
  expect(await stage.findViolations()).toEqual([]);
}, 90_000);

test('when the day’s money is gone, the free instance takes every call and nobody gets a 402', async () => {
  const { before, ends, account } = await doWithoutMoney(stage, { calls: 100 });
  expect(before).toEqual({ succeeded: 8, budget_exhausted: 4 });
  expect(ends).toEqual({ succeeded: 100 });
  expect(account).toEqual({ limitUsd: 8, spentUsd: 8, reservedUsd: 0 });
  expect(await stage.findViolations()).toEqual([]);
});

test('an evicted instance that sends a heartbeat is called by every router within 2 s', async () => {
  const { whileEvicted, ends, afterMs } = await reviveEvictedInstance(stage);
  expect(whileEvicted).toEqual({ no_instance: 8 });
  expect(ends).toEqual({ succeeded: 4 });
  expect(afterMs).toBeLessThan(2_000);
  expect(await stage.findViolations()).toEqual([]);
});

test('a race of fixed prices and prices by time for one limit overspends nothing and leaves nothing reserved', async () => {
  const race = { calls: 600, limitUsd: 6, cancelledShare: 0, unansweredShare: 0, killEvery: null };
  const { ends, account } = await raceForMoney(stage, race);
  expect(total(ends)).toBe(600);
  expect(Object.keys(ends)).toEqual(expect.arrayContaining(['succeeded', 'budget_reserved']));
  expect(account.spentUsd).toBeLessThanOrEqual(account.limitUsd);
  expect(account.reservedUsd).toBe(0);
  expect(await stage.findViolations()).toEqual([]);
});

test('nor with cancels, time-outs, and routers killed and replaced', async () => {
  const race = { calls: 800, limitUsd: 12, cancelledShare: 0.1, unansweredShare: 0.1, killEvery: 150 };
  const { ends, kills, account } = await raceForMoney(stage, race);
  expect(total(ends)).toBe(800);
  expect(kills).toBeGreaterThan(0);
  expect(account.spentUsd).toBeLessThanOrEqual(account.limitUsd);
  expect(account.reservedUsd).toBe(0);
  expect(await stage.findViolations()).toEqual([]);
}, 90_000);
