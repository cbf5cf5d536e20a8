import { randomInt } from 'node:crypto';
import type { CostOutlook } from '@capstan/core/money/holds';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AttemptEnd, type Claim, loseExpiredAttempts } from '../../../src/db/attempt/attempt.ts';
import { growHolds, type HoldPiece } from '../../../src/db/attempt/hold.ts';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import { setGlobalLimit, setProjectLimit, takeNewMarks } from '../../../src/db/money/budget.ts';
import { type Drift, findDrift } from '../../../src/db/money/budget-drift.ts';
import { passMidnight } from '../../support/budgets.ts';
import { useDatabase } from '../../support/database.ts';
import {
  aClaim,
  anEnd,
  anInstance,
  aProject,
  aRun,
  claimAttempt,
  claimAttempts,
  type StoredRun,
  settleAttempts,
} from '../../support/factories.ts';
import { isLong } from '../../support/long.ts';
import { waitFor } from '../../support/wait.ts';

const workers = isLong ? 64 : 24;
/** Of each of four processes. */
const poolSize = isLong ? 18 : 6;
const { db, url } = useDatabase(poolSize);
const others = [1, 2, 3].map(() => connectDatabase(url, poolSize));
const pools = [db, ...others];
const mostRisk = 50;

beforeAll(async () => {
  // At every commit, in the words of the database: the risk of one call needs no room.
  await db.raw(
    `alter table budget add constraint within_limit check (limit_nano is null or spent_nano + reserved_nano <= limit_nano + ${mostRisk})`,
  );
});
afterAll(() => Promise.all(others.map((pool) => pool.destroy())));

function pick<Item>(items: readonly Item[]): Item {
  return items[randomInt(items.length)] as Item;
}
function poolOf(worker: number): Db {
  return pools[worker % pools.length] as Db;
}

async function countDeadlocks(): Promise<number> {
  const { rows } = await db.raw(
    'select deadlocks::int from pg_stat_database where datname = current_database()',
  );
  return rows[0].deadlocks;
}

/** Three projects in three zones with limits, runs with ceilings and without, instances full and empty, free and paid. */
async function aWorld() {
  const zones = ['Pacific/Kiritimati', 'Pacific/Pago_Pago', 'UTC'];
  const projects = await Promise.all(
    zones.map((timezone) => aProject(db, { timezone, daily_limit_nano: 4_000n })),
  );
  const runs = await Promise.all(
    projects.flatMap(({ project_id }) =>
      [null, 1e-6, 2e-6].map((budget_ceiling_usd) => aRun(db, { project_id, budget_ceiling_usd })),
    ),
  );
  // Two below each that has a ceiling, one below the other: together they have no more than it.
  for (const { run_id, project_id } of runs.filter((_, index) => index % 3 > 0)) {
    const child = await aRun(db, { project_id, parent_run_id: run_id, parent_step_id: 'c', parent_item: 0 });
    const below = { parent_run_id: child.run_id, parent_step_id: 'c', parent_item: 0 };
    runs.push(child, await aRun(db, { project_id, ...below, budget_ceiling_usd: 1e-6 }));
  }
  const paid = { cost_type: 'per_call', rate_usd: 1 } as const;
  const fleet = await Promise.all([
    ...[1, 3, 200].map((max_concurrency) => anInstance(db, { ...paid, max_concurrency })),
    anInstance(db, { max_concurrency: 200 }),
  ]);
  return { projects, runs, fleet };
}

type World = Awaited<ReturnType<typeof aWorld>>;

function aRandomClaim({ runs, fleet }: World): Claim {
  const instance = pick(fleet);
  const reserved_nano = instance.cost_type === 'free' ? 0n : BigInt(1 + randomInt(100));
  return aClaim(pick(runs), instance, {
    step_id: `s${randomInt(30)}`,
    capability: `c${randomInt(4)}`,
    lease_ms: randomInt(3) === 0 ? -10_000 : 30_000,
    reserved_nano,
    ...(reserved_nano === 0n || randomInt(2) === 0
      ? { risk_nano: reserved_nano === 0n ? 0n : BigInt(randomInt(mostRisk + 1)) }
      : { outlook: anOutlook(Number(reserved_nano)) }),
  });
}

function anOutlook(held: number): CostOutlook {
  return { mean: held + randomInt(60) - 20, variance: randomInt(400) };
}

function aRandomPiece({ attempt_id, token, reserved_nano }: Claim): HoldPiece {
  const least = BigInt(1 + randomInt(20));
  const outlook = anOutlook(Number(reserved_nano) + 20);
  return { attempt_id, token, most: least + BigInt(randomInt(200)), least, outlook };
}

function aRandomEnd(claim: Claim): AttemptEnd {
  const kind = randomInt(10);
  const settled_nano = claim.reserved_nano === 0n ? 0n : BigInt(randomInt(Number(claim.reserved_nano) + 1));
  if (kind < 2) return anEnd(claim, { state: 'released', ambiguity: 'not_sent', step_state: 'retrying' });
  if (kind < 9) return anEnd(claim, { settled_nano, step_state: 'retrying', counted: true });
  return anEnd(claim, { settled_nano });
}

/** Pieces that were granted. */
const grown = { pieces: 0 };

function batchOf<Item>(make: () => Item): Item[] {
  return Array.from({ length: 1 + randomInt(6) }, make);
}

async function work(pool: Db, world: World, open: Claim[], rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const luck = randomInt(20);
    if (luck === 0) await loseExpiredAttempts(pool);
    else if (luck === 1) await setProjectLimit(pool, pick(world.projects).project_id, 4_000n);
    else if (luck === 2) await setGlobalLimit(pool, 10_000n);
    else if (luck === 3) await takeNewMarks(pool);
    else if (luck < 8) {
      const calls = batchOf(() => pick(open.slice(-40))).filter((claim) => claim !== undefined);
      const once = [...new Map(calls.map((claim) => [claim.attempt_id, claim])).values()];
      grown.pieces += (await growHolds(pool, once.map(aRandomPiece))).filter(
        (piece) => piece?.granted,
      ).length;
    } else if (luck < 14) {
      const claims = batchOf(() => aRandomClaim(world));
      const results = await claimAttempts(pool, claims);
      open.push(...claims.filter((_, at) => results[at]?.outcome === 'claimed'));
    } else {
      // Some are settled twice, some late, some never.
      const ends = batchOf(() => pick(open)).filter((claim) => claim !== undefined);
      const once = [...new Map(ends.map((claim) => [claim.attempt_id, claim])).values()];
      await settleAttempts(pool, once.map(aRandomEnd));
    }
  }
}

/** Compares sums until the work is done. @returns how often, and what was wrong */
async function watchDrift(isOver: () => boolean): Promise<{ looks: number; seen: Drift[] }> {
  const seen: Drift[] = [];
  let looks = 0;
  for (; !isOver(); looks++) seen.push(...(await findDrift(poolOf(looks))));
  return { looks, seen };
}

describe(`${workers} workers with random scopes, over two days`, () => {
  it('never deadlock, never pass a limit, and every sum equals its rows, also while they work', async () => {
    const world = await aWorld();
    await setGlobalLimit(db, 10_000n);
    const open: Claim[] = [];
    for (let claims = 0; claims < 60; claims++) {
      const claim = aRandomClaim(world);
      if ((await claimAttempt(db, claim)).outcome === 'claimed') open.push(claim);
    }
    await passMidnight(db);

    let isOver = false;
    const watching = watchDrift(() => isOver);
    await Promise.all(
      Array.from({ length: workers }, (_, worker) => work(poolOf(worker), world, open, isLong ? 15 : 6)),
    ).finally(() => {
      isOver = true;
    });
    const { looks, seen } = await watching;
    expect(looks).toBeGreaterThan(isLong ? 10 : 2);
    expect(seen).toEqual([]);
    expect(await findDrift(db)).toEqual([]);
    expect(await countDeadlocks()).toBe(0);
    expect(grown.pieces).toBeGreaterThan(0);

    await db.raw(`update attempt set lease_until = now() - interval '10 seconds' where state = 'dispatched'`);
    while ((await loseExpiredAttempts(db)) > 0);
    expect(await findDrift(db)).toEqual([]);
    const { rows } = await db.raw(
      `select count(*) filter (where reserved_nano <> 0)::int as held, count(*) filter (where spent_nano > 0)::int > 10 as spent,
         count(*) filter (where rest_nano <> 0 or variance > 1e-6)::int as expected
       from budget`,
    );
    expect(rows).toEqual([{ held: 0, spent: true, expected: 0 }]);
    const { rows: wrong } = await db.raw(
      `select a.attempt_id from attempt a join ledger_entry l using (attempt_id) where a.reserved_nano > 0
       group by 1 having sum(l.amount_nano) filter (where l.kind <> 'reserve') <> max(a.settled_nano)
         or max(l.amount_nano) filter (where l.kind = 'reserve') <> max(a.reserved_nano - a.grown_nano)`,
    );
    expect(wrong).toEqual([]);
  });
});

describe('a limit that changes while a day is added', () => {
  const openDay = (run: StoredRun) => async (pool: Db) =>
    pool.raw(`select open_budget(?, (now() at time zone 'UTC')::date)`, [`project:${run.project_id}`]);
  const limitOf = async ({ project_id }: StoredRun): Promise<unknown[]> =>
    db('budget')
      .where({ scope: `project:${project_id}` })
      .select('limit_nano');

  it.each(['the day first', 'the limit first'])('reaches that day: %s', async (order) => {
    const { project_id } = await aProject(db, { timezone: 'UTC' });
    const run = await aRun(db, { project_id });
    const [first, second] = [await db.transaction(), poolOf(1)];
    const changes = [openDay(run), (pool: Db) => setProjectLimit(pool, project_id, 7n)] as const;
    const [begin, follow] = order === 'the day first' ? changes : [changes[1], changes[0]];
    await begin(first);
    let isOver = false;
    const following = follow(second).finally(() => {
      isOver = true;
    });
    await waitFor('a wait', async () => {
      const { rows } = await db.raw(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return isOver || rows.length > 0;
    });
    await first.commit();
    await following;
    expect(await limitOf(run)).toEqual([{ limit_nano: '7' }]);
  });
});
