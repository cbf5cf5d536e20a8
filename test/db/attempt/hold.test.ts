import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Claim, loseExpiredAttempts, settleAndClaim } from '../../../src/db/attempt/attempt.ts';
import { growHolds, type HoldPiece } from '../../../src/db/attempt/hold.ts';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import type { InstanceColumns } from '../../../src/db/instance/instance.ts';
import { findDrift } from '../../../src/db/money/budget-drift.ts';
import { useDatabase } from '../../support/database.ts';
import {
  aClaim,
  anEnd,
  anInstance,
  aRun,
  claimAttempt,
  claimAttempts,
  type StoredRun,
  settleAttempt,
} from '../../support/factories.ts';
import { isLong } from '../../support/long.ts';

/** Of each of four processes. */
const poolSize = 4;
const { db, url } = useDatabase(poolSize);
const others = [1, 2, 3].map(() => connectDatabase(url, poolSize));
const pools = [db, ...others];
let paid: InstanceColumns;

beforeAll(async () => {
  paid = await anInstance(db, { cost_type: 'per_call', rate_usd: 1, max_concurrency: 10_000 });
  // At every commit, in the words of the database.
  await db.raw(
    'alter table budget add constraint within_limit check (limit_nano is null or spent_nano + reserved_nano <= limit_nano)',
  );
});
afterAll(() => Promise.all(others.map((pool) => pool.destroy())));

/** A run with a ceiling in nano-USD. */
function aRunOf(nano: number): Promise<StoredRun> {
  return aRun(db, { budget_ceiling_usd: nano / 1e9 });
}

let steps = 0;
/** A call that holds so much and is expected to hold the mean at its end. */
function aCall(run: StoredRun, held: bigint, mean: number, variance = 0): Claim {
  steps += 1;
  return aClaim(run, paid, {
    step_id: `s${steps}`,
    reserved_nano: held,
    outlook: { mean, variance },
    is_first: true,
    known_failures: [],
  });
}

async function claimed(claim: Claim): Promise<Claim> {
  expect((await claimAttempt(db, claim)).outcome).toBe('claimed');
  return claim;
}

function aPiece({ attempt_id, token }: Claim, least: bigint, most = least, mean = Number(least)): HoldPiece {
  return { attempt_id, token, least, most, outlook: { mean, variance: 0 } };
}

async function budgetOf({ run_id }: StoredRun) {
  const row = await db('budget')
    .where({ scope: `run:${run_id}` })
    .first();
  return {
    held: Number(row.reserved_nano),
    spent: Number(row.spent_nano),
    rest: Number(row.rest_nano),
    variance: row.variance,
  };
}

describe('a call whose hold grows', () => {
  it('is expected to hold its mean, and gives back all but its cost', async () => {
    const run = await aRunOf(1_000);
    const claim = await claimed(aCall(run, 100n, 400, 2_500));
    expect(await budgetOf(run)).toEqual({ held: 100, spent: 0, rest: 300, variance: 2_500 });
    expect(await growHolds(db, [aPiece(claim, 50n, 200n, 450)])).toEqual([{ granted: 200n, room: 700n }]);
    expect(await budgetOf(run)).toEqual({ held: 300, spent: 0, rest: 150, variance: 0 });
    await settleAttempt(db, anEnd(claim, { settled_nano: 260n }));
    expect(await budgetOf(run)).toEqual({ held: 0, spent: 260, rest: 0, variance: 0 });
    expect(await findDrift(db)).toEqual([]);
  });

  it('gets the least where the most has no room, and nothing where the least has none', async () => {
    const run = await aRunOf(1_000);
    const claim = await claimed(aCall(run, 700n, 700));
    expect(await growHolds(db, [aPiece(claim, 200n, 400n)])).toEqual([{ granted: 200n, room: 100n }]);
    expect(await growHolds(db, [aPiece(claim, 101n)])).toEqual([{ granted: 0n, room: 100n }]);
    expect(await budgetOf(run)).toMatchObject({ held: 900 });
  });

  it('shares the room with others of one statement: a call without room gets none', async () => {
    const [tight, ample] = [await aRunOf(1_000), await aRunOf(1_000)];
    const [one, two] = [await claimed(aCall(tight, 900n, 900)), await claimed(aCall(ample, 100n, 100))];
    const pieces = [aPiece(one, 200n), aPiece(two, 300n)];
    expect((await growHolds(db, pieces)).map((piece) => piece?.granted)).toEqual([0n, 300n]);
    expect(await budgetOf(tight)).toMatchObject({ held: 900 });
    expect(await budgetOf(ample)).toMatchObject({ held: 400 });
  });

  it('has no room above its limits: without any it gets the most', async () => {
    const run = await aRun(db);
    const claim = await claimed(aCall(run, 100n, 100));
    expect(await growHolds(db, [aPiece(claim, 1n, 5_000n)])).toEqual([{ granted: 5_000n, room: null }]);
  });

  it('grows no more when another has taken it over, or it has ended', async () => {
    const run = await aRunOf(1_000);
    const [foreign, ended] = [await claimed(aCall(run, 10n, 10)), await claimed(aCall(run, 10n, 10))];
    await settleAttempt(db, anEnd(ended));
    const pieces = [{ ...aPiece(foreign, 5n), token: ended.token }, aPiece(ended, 5n)];
    expect(await growHolds(db, pieces)).toEqual([null, null]);
    expect(await budgetOf(run)).toMatchObject({ held: 10 });
  });

  it('keeps its pieces with their times: the first 31, then the sum of all others', async () => {
    const run = await aRunOf(1_000);
    const claim = await claimed(aCall(run, 10n, 500));
    const nanos = Array.from({ length: 40 }, (_, at) => at + 1);
    for (const nano of nanos) await growHolds(db, [aPiece(claim, BigInt(nano))]);
    const { pieces, grown_nano, piece_ms, piece_nano } = await db('attempt')
      .where({ attempt_id: claim.attempt_id })
      .first();
    const later = nanos.slice(31).reduce((sum, nano) => sum + nano, 0);
    expect([pieces, grown_nano]).toEqual([40, '820']);
    expect(piece_nano).toEqual([...nanos.slice(0, 31), later].map(String));
    expect(piece_ms).toHaveLength(32);
    expect(piece_ms).toEqual(piece_ms.toSorted((one: number, other: number) => one - other));
  });

  it('keeps no piece that was not granted', async () => {
    const run = await aRunOf(100);
    const claim = await claimed(aCall(run, 90n, 100));
    await growHolds(db, [aPiece(claim, 20n)]);
    await growHolds(db, [aPiece(claim, 7n)]);
    const row = await db('attempt').where({ attempt_id: claim.attempt_id }).first();
    expect([row.pieces, row.piece_nano]).toEqual([1, ['7']]);
  });

  it('costs its whole hold when its process is gone', async () => {
    const run = await aRunOf(1_000);
    const claim = await claimed({ ...aCall(run, 100n, 500, 400), lease_ms: -10_000 });
    await growHolds(db, [aPiece(claim, 150n, 150n, 600)]);
    await loseExpiredAttempts(db);
    expect(await budgetOf(run)).toEqual({ held: 0, spent: 250, rest: 0, variance: 0 });
  });
});

describe('an admission', () => {
  it.each([
    ['every call in flight ends within the limit', 500, 0, 'claimed'],
    ['it does not', 501, 0, 'over_budget'],
    ['three deviations of the sum fit', 200, 10_000, 'claimed'],
    ['three deviations do not', 201, 10_000, 'over_budget'],
  ])('looks ahead: %s', async (_, mean, variance, outcome) => {
    const run = await aRunOf(1_000);
    await claimed(aCall(run, 10n, 500));
    expect((await claimAttempt(db, aCall(run, 10n, mean, variance))).outcome).toBe(outcome);
  });

  it('of a call that holds its worst case waits for those that grow', async () => {
    const run = await aRunOf(1_000);
    const growing = await claimed(aCall(run, 10n, 600));
    const whole = { reserved_nano: 401n, is_first: true, known_failures: [] };
    const refused = await claimAttempt(db, aClaim(run, paid, { step_id: 'w', ...whole }));
    expect(refused).toMatchObject({
      outcome: 'over_budget',
      output: { reserved_nano: '10', rest_nano: '590' },
    });
    const next = {
      ends: [anEnd(growing, { settled_nano: 20n })],
      claims: [aClaim(run, paid, { step_id: 'w', ...whole })],
    };
    expect((await settleAndClaim(db, next, true)).claims).toMatchObject([{ outcome: 'claimed' }]);
  });

  it('of several takes those that fit, one by one', async () => {
    const run = await aRunOf(1_000);
    const claims = Array.from({ length: 5 }, () => aCall(run, 10n, 300));
    const outcomes = (await claimAttempts(db, claims)).map(({ outcome }) => outcome);
    expect(outcomes.filter((outcome) => outcome === 'claimed')).toHaveLength(3);
    expect(await budgetOf(run)).toMatchObject({ held: 30, rest: 870 });
  });
});

describe('many at once', () => {
  const extenders = isLong ? 256 : 64;

  it('fill every limit to the nano, and never deadlock', async () => {
    const runs = await Promise.all([700, 900, 1_100].map(aRunOf));
    const calls = await Promise.all(
      Array.from({ length: 24 }, (_, at) => claimed(aCall(runs[at % 3] as StoredRun, 10n, 10))),
    );
    const extend = async (pool: Db, at: number): Promise<void> => {
      const own = calls.filter((_, index) => (index + at) % 5 === 0).toSorted(() => (at % 2) - 0.5);
      for (let isOver = false; !isOver; ) {
        const pieces = await growHolds(
          pool,
          own.map((claim) => aPiece(claim, 1n, BigInt(1 + (at % 7)), 10)),
        );
        isOver = pieces.every((piece) => piece?.granted === 0n);
      }
    };
    await Promise.all(
      Array.from({ length: extenders }, (_, at) => extend(pools[at % pools.length] as Db, at)),
    );
    expect((await Promise.all(runs.map(budgetOf))).map(({ held }) => held)).toEqual([700, 900, 1_100]);
    expect(await findDrift(db)).toEqual([]);
  });
});
