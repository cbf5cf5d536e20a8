import { randomInt } from 'node:crypto';
import type { Knex } from 'knex';
import { afterAll, describe, expect, it } from 'vitest';
import {
  type Claim,
  type ClaimResult,
  loseExpiredAttempts,
  renewLeases,
  settleAndClaim,
} from '../../../src/db/attempt/attempt.ts';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import { useDatabase } from '../../support/database.ts';
import { aClaim, anEnd, anInstance, aRun, claimAttempt, settleAttempt } from '../../support/factories.ts';
import { isLong } from '../../support/long.ts';
import { waitFor } from '../../support/wait.ts';

/** Of each of four processes. A connection costs as much as many claims. */
const poolSize = isLong ? 8 : 4;
const { db, url } = useDatabase(poolSize);
const others = [1, 2, 3].map(() => connectDatabase(url, poolSize));
const pools = [db, ...others];
afterAll(() => Promise.all(others.map((pool) => pool.destroy())));

/** Each from another process, as far as Postgres can see. */
function claimAll(claims: readonly Claim[]): Promise<ClaimResult[]> {
  return Promise.all(claims.map((claim, at) => claimAttempt(pools[at % pools.length] as Db, claim)));
}

function countBy(results: readonly ClaimResult[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { outcome } of results) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

async function openAttempts(where: Record<string, string>): Promise<number> {
  const rows = await db('attempt')
    .where(where)
    .whereIn('state', ['reserved', 'dispatched'])
    .select('attempt_id');
  return rows.length;
}

/** Claims of different steps, so that only the instance is fought over. */
async function manyClaims(count: number, instance: Parameters<typeof aClaim>[1], must_be_idle: boolean) {
  const run = await aRun(db);
  return Array.from({ length: count }, (_, at) => aClaim(run, instance, { step_id: `s${at}`, must_be_idle }));
}

async function blockedQueries(): Promise<number> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  );
  return rows.length;
}

/** Holds a lock while others come for it, then lets them continue in the order in which they came. */
async function inOrder<Result>(
  lock: (trx: Knex.Transaction) => Promise<unknown>,
  others: readonly (() => Promise<Result>)[],
): Promise<Result[]> {
  const trx = await db.transaction();
  const results: Promise<Result>[] = [];
  try {
    await lock(trx);
    for (const [at, other] of others.entries()) {
      const result = other();
      result.catch(() => undefined);
      results.push(result);
      await waitFor(`${at + 1} blocked queries`, async () => (await blockedQueries()) === at + 1);
    }
  } finally {
    await trx.commit();
  }
  return Promise.all(results);
}

describe('claims at once', () => {
  it('hold exactly the slots that an instance has', async () => {
    const instance = await anInstance(db, { max_concurrency: 4 });
    const results = await claimAll(await manyClaims(24, instance, false));
    expect(countBy(results)).toEqual({ claimed: 4, full: 20 });
    expect(await openAttempts({ instance_id: instance.instance_id })).toBe(4);
  });

  it('never put two calls on one idle free instance', async () => {
    const instance = await anInstance(db, { max_concurrency: 8 });
    const results = await claimAll(await manyClaims(40, instance, true));
    expect(countBy(results)).toEqual({ claimed: 1, full: 39 });
  });

  it.each(['a step', 'a direct call'])('of one key supersede each other: %s', async (what) => {
    const [run, instance] = [await aRun(db), await anInstance(db, { max_concurrency: 2 })];
    const direct = what === 'a step' ? {} : { step: null };
    const claims = Array.from({ length: 20 }, () => aClaim(run, instance, direct));
    const results = await claimAll(claims);
    expect(countBy(results)).toEqual({ claimed: 20 });
    const numbers = results.map((result) => ('number' in result ? result.number : 0)).sort((a, b) => a - b);
    expect(numbers).toEqual(Array.from({ length: 20 }, (_, at) => at + 1));
    expect(await openAttempts({ key: claims[0]?.key ?? '' })).toBe(1);
    const started = await db('event').where({ run_id: run.run_id, type: 'step.started' });
    expect(started).toHaveLength(what === 'a step' ? 1 : 0);
    const settled = await Promise.all(claims.map((claim) => settleAttempt(db, anEnd(claim))));
    expect(settled.filter((isSettled) => isSettled)).toHaveLength(1);
  });
});

describe('a claim and a settlement of one key', () => {
  const lockStep = (run_id: string) => (trx: Knex.Transaction) =>
    trx.raw('select 1 from step where run_id = ? for update', [run_id]);

  it.each([
    ['the claim', [true, false]],
    ['the settlement', [false, true]],
  ])('do not deadlock, and %s wins when it comes first', async (_, [claimFirst, isSettled]) => {
    const [run, instance] = [await aRun(db), await anInstance(db, { max_concurrency: 2 })];
    const [first, second] = [aClaim(run, instance), aClaim(run, instance)];
    await claimAttempt(db, first);
    const claim = async () => (await claimAttempt(db, second)).outcome;
    const settlement = () => settleAttempt(db, anEnd(first));
    const both: (() => Promise<string | boolean>)[] = [claim, settlement];
    const results = await inOrder(lockStep(run.run_id), claimFirst ? both : both.toReversed());
    expect(claimFirst ? results : results.toReversed()).toEqual([
      isSettled ? 'answered' : 'claimed',
      isSettled,
    ]);
  });
});

describe('a lease that ran out', () => {
  it('is not lost when it is being renewed', async () => {
    const [run, instance] = [await aRun(db), await anInstance(db)];
    const claim = aClaim(run, instance, { lease_ms: -10_000 });
    await claimAttempt(db, claim);
    const renewal = await db.transaction();
    expect((await renewLeases(renewal, [claim], 30_000)).size).toBe(1);
    let isOver = false;
    const reaping = loseExpiredAttempts(db).finally(() => {
      isOver = true;
    });
    await waitFor('an end or a wait', async () => isOver || (await blockedQueries()) > 0);
    await renewal.commit();
    expect(await reaping).toBe(0);
    expect(await settleAttempt(db, anEnd(claim))).toBe(true);
  });
});

describe('a storm of claims, settlements and lost leases', () => {
  const keys = 12;

  /** One worker: takes what it gets, and mostly brings it to an end. */
  const work = async (pool: Db, claims: (step: number) => Claim, rounds: number): Promise<void> => {
    for (let round = 0; round < rounds; round++) {
      const claim = claims(randomInt(keys));
      const { outcome } = await claimAttempt(pool, claim);
      if (outcome !== 'claimed') continue;
      const luck = randomInt(10);
      const cost = { settled_nano: BigInt(randomInt(100)) };
      if (luck < 5)
        await settleAttempt(pool, anEnd(claim, { ...cost, step_state: 'retrying', counted: true }));
      else if (luck < 6) await settleAttempt(pool, anEnd(claim, cost));
      else if (luck < 8) await loseExpiredAttempts(pool);
    }
  };

  it('leaves every account right', async () => {
    const run = await aRun(db);
    const fleet = await Promise.all([1, 2, 3].map((max_concurrency) => anInstance(db, { max_concurrency })));
    const claims = (step: number): Claim =>
      aClaim(run, fleet[randomInt(3)] as (typeof fleet)[number], {
        step_id: `s${step}`,
        lease_ms: randomInt(3) === 0 ? 0 : 30_000,
        reserved_nano: 100n,
      });
    await Promise.all(
      Array.from({ length: 32 }, (_, at) => work(pools[at % 4] as Db, claims, isLong ? 12 : 6)),
    );
    await loseExpiredAttempts(db);
    await db.raw("update attempt set lease_until = now() - interval '10 seconds' where state = 'dispatched'");
    await loseExpiredAttempts(db);
    const { rows } = await db.raw(
      `select count(*) filter (where state in ('reserved', 'dispatched'))::int as open,
         count(*) filter (where reserves <> 1 or settles <> 1 or booked <> settled_nano)::int as wrong
       from attempt a cross join lateral (
         select count(*) filter (where kind = 'reserve') as reserves, count(*) filter (where kind = 'settle') as settles,
           sum(amount_nano) filter (where kind <> 'reserve') as booked from ledger_entry l where l.attempt_id = a.attempt_id
       ) l where run_id = ?`,
      [run.run_id],
    );
    expect(rows).toEqual([{ open: 0, wrong: 0 }]);
    const twice = await db('event')
      .where({ run_id: run.run_id, type: 'step.succeeded' })
      .groupBy('step_id')
      .havingRaw('count(*) > 1')
      .select('step_id');
    expect(twice).toEqual([]);
  });
});

describe('ends of free direct calls, many by one statement', () => {
  it('lock their attempts in the order of their ids, whatever the order in which they come', async () => {
    const [run, instance] = [await aRun(db), await anInstance(db, { max_concurrency: 64 })];
    const claims = Array.from({ length: 32 }, (_, at) =>
      aClaim(run, instance, { step: null, is_first: true, key: `call_${at}` }),
    );
    for (const claim of claims) await claimAttempt(db, claim);
    const ids = claims.map(({ attempt_id }) => attempt_id).sort();
    const [first = '', ...later] = ids;
    const holder = await db.transaction();
    await holder.raw('select 1 from attempt where attempt_id = ? for update', [first]);
    const ends = claims
      .toSorted((one, other) => (one.attempt_id < other.attempt_id ? 1 : -1))
      .map((claim) => anEnd(claim, { step: null, output: undefined }));
    const settling = settleAndClaim(db, { ends, claims: [] }, false);
    await waitFor('the settlement to wait for the first', async () => (await blockedQueries()) === 1);
    const free = 'select 1 from attempt where attempt_id = any (?) for update nowait';
    const { rows } = await db.raw(free, [later]).finally(() => holder.commit());
    expect(rows).toHaveLength(later.length);
    expect((await settling).ends).toEqual(ends.map(() => 'settled'));
    expect(await openAttempts({ instance_id: instance.instance_id })).toBe(0);
  });
});
