import { afterAll, beforeAll, beforeEach, expect, inject, test, vi } from 'vitest';
import { useDatabase } from '../support/database.ts';
import { isLong } from '../support/long.ts';
import { askWithOneKey } from './ask-with-one-key.ts';
import { crowdRouters } from './crowd-the-routers.ts';
import { doWithoutMoney } from './do-without-money.ts';
import { killHolders, leaseOfEach, lowerConcurrency, pauseHolders } from './lease-slots.ts';
import { loseMostOfFleet } from './lose-most-of-a-fleet.ts';
import { breakFreeInstance, killFreeInstance } from './lose-the-free-instance.ts';
import { moveIntoPort } from './move-into-a-port.ts';
import { passMidnight } from './pass-midnight.ts';
import { raceForMoney } from './race-for-money.ts';
import { reviveEvictedInstance } from './revive-an-evicted-instance.ts';
import { sayGoodbyeLate } from './say-goodbye-late.ts';
import { sendRouterAway } from './send-a-router-away.ts';
import { shareIdleInstance } from './share-an-idle-instance.ts';
import { spendLimit } from './spend-a-limit.ts';
import { openStage, type Stage } from './stage.ts';

/** The long form: `npm run faults -- scenarios 20`. */
const times = Number(process.env.TIMES ?? 1);
vi.setConfig({ testTimeout: 180_000 * times });

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

let startedAt = 0;
beforeEach(() => {
  startedAt = performance.now();
});

/** In the long form what an act came to is printed, and how long it took is judged. */
function shown<Figures extends object>(figures: Figures): Figures {
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  const name = expect.getState().currentTestName;
  if (times > 1) console.log(`${name}\n  ${seconds} s ${JSON.stringify(figures)}`);
  return figures;
}

function total(ends: Readonly<Record<string, number>>): number {
  return Object.values(ends).reduce((sum, count) => sum + count, 0);
}

test('of all calls over four routers exactly as many succeed as the limit has units', async () => {
  const { ends, account } = shown(await spendLimit(stage, { calls: 400 * times, units: 100 * times }));
  const { budget_exhausted = 0, budget_reserved = 0, ...others } = ends;
  const limitUsd = 100 * times;
  expect(others).toEqual({ succeeded: limitUsd });
  expect(budget_exhausted + budget_reserved).toBe(3 * limitUsd);
  expect(account).toEqual({ limitUsd, spentUsd: limitUsd, reservedUsd: 0 });
  expect(await stage.findViolations()).toEqual([]);
});

test('four routers with 100 calls at once never put two on the one free idle instance', async () => {
  const { ends, most, free } = shown(await shareIdleInstance(stage, { calls: 100 * times }));
  expect(ends).toEqual({ succeeded: 100 * times });
  expect(most).toBe(1);
  expect(free).toBeGreaterThan(0);
  expect(await stage.findViolations()).toEqual([]);
});

test.runIf(isLong)(
  'the free instance killed at work costs no caller a failure, and is used again after its restart',
  async () => {
    const { ends, kills } = shown(await killFreeInstance(stage, { times }));
    expect(ends).toEqual({ succeeded: total(ends) });
    expect(kills).toBe(times);
    expect(await stage.findViolations()).toEqual([]);
  },
);

test.runIf(isLong)('an instance whose breaker opened comes back through one trial at a time', async () => {
  const { ends, trials } = shown(await breakFreeInstance(stage));
  expect(ends).toEqual({ succeeded: total(ends) });
  expect(trials).toBeGreaterThan(0);
  expect(await stage.findViolations()).toEqual([]);
});

test.runIf(isLong)(
  'when the day’s money is gone, the free instance takes every call and no caller gets a 402',
  async () => {
    const { before, ends, account } = shown(await doWithoutMoney(stage, { calls: 100 * times }));
    expect(before).toEqual({ succeeded: 8, budget_exhausted: 4 });
    expect(ends).toEqual({ succeeded: 100 * times });
    expect(account).toEqual({ limitUsd: 8, spentUsd: 8, reservedUsd: 0 });
    expect(await stage.findViolations()).toEqual([]);
  },
);

test.runIf(isLong)('an evicted instance that sends a heartbeat is called by every router', async () => {
  const { whileEvicted, ends, afterMs } = shown(await reviveEvictedInstance(stage));
  expect(whileEvicted).toEqual({ no_instance: 8 });
  expect(ends).toEqual({ succeeded: 4 });
  if (times > 1) expect(afterMs).toBeLessThan(2_000);
  expect(await stage.findViolations()).toEqual([]);
});

test.runIf(isLong)(
  'a race of fixed prices and prices by time for one limit overspends nothing and leaves nothing reserved',
  async () => {
    const race = {
      calls: 400 * times,
      limitUsd: 4 * times,
      cancelledShare: 0,
      unansweredShare: 0,
      killEvery: null,
    };
    const { ends, account } = shown(await raceForMoney(stage, race));
    expect(total(ends)).toBe(race.calls);
    expect(Object.keys(ends)).toEqual(expect.arrayContaining(['succeeded', 'budget_reserved']));
    expect(account.spentUsd).toBeLessThanOrEqual(account.limitUsd);
    expect(account.reservedUsd).toBe(0);
    expect(await stage.findViolations()).toEqual([]);
  },
);

test('a race for one limit with cancels, timeouts, and routers killed and replaced overspends nothing', async () => {
  const race = {
    calls: 400 * times,
    limitUsd: 6 * times,
    cancelledShare: 0.1,
    unansweredShare: 0.1,
    killEvery: 100,
  };
  const { ends, kills, account } = shown(await raceForMoney(stage, race));
  expect(total(ends)).toBe(race.calls);
  expect(kills).toBeGreaterThan(0);
  expect(account.spentUsd).toBeLessThanOrEqual(account.limitUsd);
  expect(account.reservedUsd).toBe(0);
  expect(await stage.findViolations()).toEqual([]);
});

test('one key sent 50 times at once over four routers is one call, and all get its answer', async () => {
  const { ends, answers, calls, account } = shown(await askWithOneKey(stage, { keys: times, times: 50 }));
  expect(ends).toEqual({ succeeded: 50 * times });
  expect({ answers, calls }).toEqual({ answers: 1, calls: times });
  expect(account).toEqual({ limitUsd: 0, spentUsd: times / 100, reservedUsd: 0 });
  expect(await stage.findViolations()).toEqual([]);
});

test.runIf(isLong)(
  'a day’s limit ends with the day, also where midnight is skipped or comes twice',
  async () => {
    const { before, overnight, after, days } = shown(await passMidnight(stage, { units: 16 * times }));
    const { budget_exhausted = 0, budget_reserved = 0, ...spent } = before;
    expect([spent, budget_exhausted + budget_reserved]).toEqual([{ succeeded: 36 * times }, 12]);
    expect(overnight).toEqual({ succeeded: 12 * times });
    expect(after).toEqual({ succeeded: 48 * times, budget_exhausted: 12 });
    const two = Array(2).fill(`${16 * times} of ${16 * times}, 0 reserved`);
    expect(days).toEqual({ plain: two, skipped: two, twice: two });
    expect(await stage.findViolations()).toEqual([]);
  },
);

test.runIf(isLong)('when six of ten instances are dead or silent, the rest serves everybody', async () => {
  const { ends, inVain } = shown(await loseMostOfFleet(stage, { calls: 200 * times }));
  expect(ends).toEqual({ succeeded: total(ends) });
  expect(inVain).toBeGreaterThan(0);
  expect(await stage.findViolations()).toEqual([]);
});

test.runIf(isLong)(
  'a DELETE that comes late, over any router, leaves the successor of the instance where it is',
  async () => {
    const { ends, late, meant, afterwards } = shown(await sayGoodbyeLate(stage, { lives: times }));
    expect(late).toEqual(Array(stage.places * times).fill({ state: 'up', stale: true }));
    expect(meant).toEqual({ state: 'deregistered', stale: false });
    expect(ends).toEqual({ succeeded: total(ends) });
    expect(afterwards).toEqual({ no_instance: 8 });
    expect(await stage.findViolations()).toEqual([]);
  },
);

test.runIf(isLong)('an instance that takes the port of a dead one gets no call for the other', async () => {
  const { ends, got, state } = shown(await moveIntoPort(stage, { calls: 64 * times }));
  expect(ends).toEqual({ succeeded: total(ends) });
  expect(got).toEqual({ 'move-into-a-port.next': 32 * times });
  expect(['down', 'quarantined']).toContain(state);
  expect(await stage.findViolations()).toEqual([]);
});

test.runIf(isLong)(
  'the calls of a stopped router are made by others, answered once and paid as often as they were sent',
  async () => {
    const { ends, answers, sent, lost, account } = shown(await sendRouterAway(stage, { calls: 20 * times }));
    expect(ends).toEqual({ succeeded: 100 * times });
    expect({ answers, sent, lost }).toEqual({ answers: 1, sent: 100 * times, lost: 20 * times });
    expect(account).toEqual({ limitUsd: 0, spentUsd: times, reservedUsd: 0 });
    expect(await stage.findViolations()).toEqual([]);
  },
);

test('four routers with 64 callers each serve all of them without a deadlock', async () => {
  const { ends, most, deadlocks, spentUsd, paidCalls } = shown(
    await crowdRouters(stage, { calls: 256 * times }),
  );
  expect(ends).toEqual({ succeeded: 256 * times });
  expect(most).toBeLessThanOrEqual(4);
  expect(deadlocks).toBe(0);
  expect(paidCalls).toBeGreaterThan(0);
  expect(spentUsd).toBe(paidCalls);
  expect(await stage.findViolations()).toEqual([]);
});

const shares: readonly (readonly [number, string])[] = [
  [500, 'routers lease some'],
  [1, 'none is leased'],
];
test.each(shares.slice(0, isLong ? 2 : 1))(
  'four routers share %i slots of a free instance: %s',
  async (slots) => {
    const { ends, most, leases } = shown(await leaseOfEach(stage, { slots, rounds: 2 * times }));
    expect(ends).toEqual({ succeeded: total(ends) });
    expect(most).toBeLessThanOrEqual(slots);
    if (slots === 1) expect(leases).toBe(0);
    else expect(leases).toBeGreaterThan(1);
    expect(await stage.findViolations()).toEqual([]);
  },
);

test.runIf(isLong)(
  'routers that are paused for longer than their lease put no call too many on an instance',
  async () => {
    const { ends, most } = shown(await pauseHolders(stage, { rounds: times }));
    // A router may lose what it had open when it was stopped: six callers.
    const { contact_lost = 0, ...others } = ends;
    expect(others).toEqual({ succeeded: total(ends) - contact_lost });
    expect(contact_lost).toBeLessThanOrEqual(6 * times);
    expect(most).toBeLessThanOrEqual(16);
    expect(await stage.findViolations()).toEqual([]);
  },
);

test('the slots of killed routers are free again, and no call of others fails', async () => {
  const { ends, most, kills } = shown(await killHolders(stage, { rounds: times }));
  expect(ends).toEqual({ succeeded: total(ends) });
  expect(kills).toBe(times);
  expect(most).toBeLessThanOrEqual(16);
  expect(await stage.findViolations()).toEqual([]);
});

test.runIf(isLong)('an instance that lowers its concurrency under load gets no more than that', async () => {
  const { ends, afterwards } = shown(await lowerConcurrency(stage));
  expect(ends).toEqual({ succeeded: total(ends) });
  expect(afterwards).toBeLessThanOrEqual(9);
  expect(await stage.findViolations()).toEqual([]);
});
