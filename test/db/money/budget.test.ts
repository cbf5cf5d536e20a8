import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Claim, loseExpiredAttempts } from '../../../src/db/attempt/attempt.ts';
import type { InstanceColumns } from '../../../src/db/instance/instance.ts';
import { setGlobalLimit } from '../../../src/db/money/budget.ts';
import { findDrift } from '../../../src/db/money/budget-drift.ts';
import { budgetsOf, passMidnight } from '../../support/budgets.ts';
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
  settleAttempt,
} from '../../support/factories.ts';

const { db } = useDatabase();
let paid: InstanceColumns;

beforeAll(async () => {
  paid = await anInstance(db, { cost_type: 'per_call', rate_usd: 1, max_concurrency: 100 });
});
beforeEach(() => setGlobalLimit(db, null));

/** A run of a project with these limits, in nano-USD. */
async function aBudgetedRun(limits: { project?: bigint; run?: bigint } = {}): Promise<StoredRun> {
  const { project_id } = await aProject(db, { daily_limit_nano: limits.project ?? 0n });
  const budget_ceiling_usd = limits.run === undefined ? null : Number(limits.run) / 1e9;
  return aRun(db, { project_id, budget_ceiling_usd });
}

function aPaidClaim(run: StoredRun, reserved_nano: bigint, over: Parameters<typeof aClaim>[2] = {}): Claim {
  return aClaim(run, paid, { reserved_nano, ...over });
}

async function outcomesOf(claims: readonly Claim[]): Promise<string[]> {
  return (await claimAttempts(db, claims)).map(({ outcome }) => outcome);
}

/** Budgets of a run and its project, without the ids in their names. */
async function budgetsAround({ project_id, run_id }: StoredRun) {
  return {
    ...(await budgetsOf(db, `run:${run_id}`))[`run:${run_id}`],
    project: (await budgetsOf(db, `project:${project_id}`))[`project:${project_id}`],
    capability: (await budgetsOf(db, `capability:${project_id}:`))[`capability:${project_id}:concat`],
  };
}

async function countRows(): Promise<number> {
  return (await db('budget').select('scope')).length;
}

async function marksOf({ run_id }: StoredRun): Promise<unknown[]> {
  const rows = await db('event').where({ run_id, type: 'run.budget_reached' }).orderBy(['xid', 'id']);
  return rows.map(({ data }) => data);
}

describe('a reservation', () => {
  it('is charged to the run, the capability, the project and all projects', async () => {
    const run = await aBudgetedRun({ project: 10n, run: 20n });
    const before = (await budgetsOf(db, 'global')).global?.reserved ?? '0';
    expect(await outcomesOf([aPaidClaim(run, 4n)])).toEqual(['claimed']);
    expect(await budgetsAround(run)).toEqual({
      limit: '20',
      reserved: '4',
      spent: '0',
      project: { limit: '10', reserved: '4', spent: '0' },
      capability: { limit: null, reserved: '4', spent: '0' },
    });
    const after = (await budgetsOf(db, 'global')).global;
    expect(BigInt(after?.reserved ?? 0) - BigInt(before)).toBe(4n);
  });

  it.each([
    ['run', { run: 3n }],
    ['project', { project: 3n, run: 10n }],
    ['global', {}],
  ])('that the %s has no room for changes nothing anywhere', async (scope, limits) => {
    const run = await aBudgetedRun(limits);
    if (scope === 'global') {
      const { rows } = await db.raw(
        `select spent_nano + reserved_nano + 3 as used from budget where scope = 'global' and window_start > '-infinity'`,
      );
      await setGlobalLimit(db, BigInt(rows[0]?.used ?? 3));
    }
    const global = await budgetsOf(db, 'global');
    const [refused] = await claimAttempts(db, [aPaidClaim(run, 4n)]);
    expect(refused).toMatchObject({ outcome: 'over_budget', output: { scope } });
    const { project, capability, ...own } = await budgetsAround(run);
    expect([own, project, capability].map((budget) => budget?.reserved)).toEqual(['0', '0', '0']);
    expect(await budgetsOf(db, 'global')).toEqual(global);
    expect(await outcomesOf([aPaidClaim(run, 3n)])).toEqual(['claimed']);
  });

  it('is refused with what the tightest scope allows, and when that changes', async () => {
    const run = await aBudgetedRun({ project: 10n, run: 8n });
    await claimAttempt(db, aPaidClaim(run, 5n));
    expect((await claimAttempts(db, [aPaidClaim(run, 4n, { step_id: 'b' })]))[0]).toMatchObject({
      output: { scope: 'run', limit_nano: '8', spent_nano: '0', reserved_nano: '5', resets_at: null },
    });
    const other = await aBudgetedRun({ project: 3n });
    const [refused] = await claimAttempts(db, [aPaidClaim(other, 4n)]);
    const { rows } = await db.raw(
      `select (date_trunc('day', now() at time zone 'UTC') + interval '1 day')::text as midnight`,
    );
    expect(refused).toMatchObject({ output: { scope: 'project', limit_nano: '3' } });
    const resetsAt = (refused as { output: { resets_at: string } }).output.resets_at;
    expect(Date.parse(resetsAt)).toBe(Date.parse(`${rows[0].midnight}Z`));
  });

  it('of a free call touches no budget', async () => {
    const [run, free] = [await aBudgetedRun({ project: 1n, run: 1n }), await anInstance(db)];
    const before = await countRows();
    const claim = aClaim(run, free);
    await claimAttempt(db, claim);
    await settleAttempt(db, anEnd(claim));
    expect(await countRows()).toBe(before);
  });
});

describe('calls whose worst case is too low', () => {
  const [worst, risk] = [1n, 999n];
  const wave = (run: StoredRun, name: string): Claim[] =>
    Array.from({ length: 20 }, (_, at) =>
      aPaidClaim(run, worst, { risk_nano: risk, step_id: `${name}${at}` }),
    );
  const claimInOne = (claims: readonly Claim[]) => claimAttempts(db, claims);
  const claimAlone = (claims: readonly Claim[]) =>
    Promise.all(claims.map((claim) => claimAttempt(db, claim)));

  /** Claims until none is admitted, and each costs its whole reservation. @returns the calls admitted by each wave */
  async function spendAll(run: StoredRun, claimAll: typeof claimInOne): Promise<number[]> {
    const admitted: number[] = [];
    for (let round = 0; admitted.at(-1) !== 0; round++) {
      const claims = wave(run, `r${round}_`);
      const results = await claimAll(claims);
      const made = claims.filter((_, at) => results[at]?.outcome === 'claimed');
      expect(new Set(results.map(({ outcome }) => outcome))).toContain('over_budget');
      for (const claim of made) await settleAttempt(db, anEnd(claim, { settled_nano: worst + risk }));
      admitted.push(made.length);
    }
    return admitted;
  }

  it.each<[limit: bigint, atOnce: number, claim: string, claimAll: typeof claimInOne]>([
    [1n, 1, 'in one batch', claimInOne],
    [1n, 1, 'each alone', claimAlone],
    [2_000n, 2, 'in one batch', claimInOne],
    [2_500n, 3, 'in one batch', claimInOne],
    [2_500n, 3, 'each alone', claimAlone],
  ])(
    'take a limit of %s by at most one of them, admitting %s at once (%s)',
    async (limit, atOnce, _, claimAll) => {
      for (const limits of [{ project: limit }, { run: limit }]) {
        const run = await aBudgetedRun(limits);
        expect(await spendAll(run, claimAll)).toEqual([atOnce, 0]);
        const spent = `${BigInt(atOnce) * 1_000n}`;
        expect(await budgetsAround(run)).toMatchObject({ reserved: '0', spent, project: { spent } });
      }
    },
  );

  it('leave the room of their risk as soon as they end', async () => {
    const run = await aBudgetedRun({ project: 1_000n });
    for (let n = 0; n < 5; n++) {
      const [first, second] = wave(run, `n${n}_`);
      expect(await outcomesOf([first as Claim])).toEqual(['claimed']);
      expect((await budgetsAround(run)).project).toMatchObject({ reserved: '1000' });
      expect(await outcomesOf([second as Claim])).toEqual(['over_budget']);
      await settleAttempt(db, anEnd(first as Claim, { settled_nano: 1n }));
    }
    expect(await budgetsAround(run)).toMatchObject({ project: { reserved: '0', spent: '5' } });
  });

  it('leave it too when they are lost, superseded or find their instance full', async () => {
    const run = await aBudgetedRun({ project: 10_000n });
    const small = await anInstance(db, { cost_type: 'per_call', rate_usd: 1, max_concurrency: 1 });
    const at = (step_id: string, over: Partial<Claim> = {}) =>
      aClaim(run, small, { reserved_nano: worst, risk_nano: risk, step_id, ...over });
    expect(await outcomesOf([at('a', { lease_ms: -10_000 }), at('b')])).toEqual(['claimed', 'full']);
    expect(await budgetsAround(run)).toMatchObject({ reserved: '1000' });
    expect(await loseExpiredAttempts(db)).toBe(1);
    expect(await budgetsAround(run)).toMatchObject({ reserved: '0', spent: '1' });
    expect(await outcomesOf([at('c')])).toEqual(['claimed']);
    expect(await outcomesOf([at('c')])).toEqual(['claimed']);
    expect(await budgetsAround(run)).toMatchObject({ reserved: '1000', spent: '2' });
    expect(await findDrift(db)).toEqual([]);
  });
});

describe('claims in one batch', () => {
  const steps = (
    run: StoredRun,
    amounts: readonly bigint[],
    over: Parameters<typeof aClaim>[2] = {},
  ): Claim[] => amounts.map((amount, at) => aPaidClaim(run, amount, { step_id: `s${at}`, ...over }));

  it('are admitted one by one when together they do not fit', async () => {
    const run = await aBudgetedRun({ project: 10n });
    expect(await outcomesOf(steps(run, [6n, 6n, 4n, 0n, 1n]))).toEqual([
      ...['claimed', 'over_budget', 'claimed', 'claimed', 'over_budget'],
    ]);
    expect((await budgetsAround(run)).project).toEqual({ limit: '10', reserved: '10', spent: '0' });
  });

  it.each([
    ['full', 100n],
    ['full, where not all of them fit', 8n],
  ])('give back what they reserved when their instance is %s', async (_, project) => {
    const run = await aBudgetedRun({ project });
    const small = await anInstance(db, { cost_type: 'per_call', rate_usd: 1, max_concurrency: 1 });
    const at = { instance_id: small.instance_id };
    const [first, second] = steps(run, [4n, 4n], at);
    const third = aPaidClaim(run, 4n, { step_id: 's2' });
    expect(await outcomesOf([first as Claim, second as Claim, third])).toEqual([
      'claimed',
      'full',
      'claimed',
    ]);
    expect(await budgetsAround(run)).toMatchObject({ reserved: '8', project: { reserved: '8' } });
  });

  it('give back what they reserved when their instance is gone or their step has ended', async () => {
    const run = await aBudgetedRun({ project: 10n });
    const done = aPaidClaim(run, 2n);
    await claimAttempt(db, done);
    await settleAttempt(db, anEnd(done, { settled_nano: 2n }));
    const gone = aPaidClaim(run, 3n, { step_id: 'g', instance_id: 'none' });
    expect(await outcomesOf([aPaidClaim(run, 3n), gone])).toEqual(['answered', 'gone']);
    expect(await budgetsAround(run)).toMatchObject({ reserved: '0', spent: '2', project: { reserved: '0' } });
  });

  it('that begin steps which have begun take no call from who makes it, also where money is short', async () => {
    const run = await aBudgetedRun({ run: 10n });
    const first = steps(run, [4n, 4n], { begins_step: true });
    expect(await outcomesOf(first)).toEqual(['claimed', 'claimed']);
    expect(await outcomesOf(steps(run, [4n, 4n], { begins_step: true }))).toEqual(['closed', 'closed']);
    expect(await budgetsAround(run)).toMatchObject({ reserved: '8', spent: '0' });
    for (const claim of first) expect(await settleAttempt(db, anEnd(claim, { settled_nano: 4n }))).toBe(true);
  });

  it('of one key supersede each other, and each reservation is charged', async () => {
    const run = await aBudgetedRun({ project: 10n });
    expect(await outcomesOf([aPaidClaim(run, 4n), aPaidClaim(run, 5n)])).toEqual(['claimed', 'claimed']);
    expect((await budgetsAround(run)).project).toEqual({ limit: '10', reserved: '5', spent: '4' });
  });
});

describe('an end', () => {
  const claimed = async (reserved: bigint, over: Parameters<typeof aClaim>[2] = {}) => {
    const run = await aBudgetedRun({ project: 100n, run: 100n });
    const claim = aPaidClaim(run, reserved, over);
    await claimAttempt(db, claim);
    return { run, claim };
  };

  it.each([
    ['settled for less', { settled_nano: 7n }, '7'],
    ['settled in full', { settled_nano: 10n }, '10'],
    ['released', { state: 'released', ambiguity: 'not_sent', step_state: 'retrying' } as const, '0'],
    ['lost', { state: 'lost', settled_nano: 10n, certainty: 'estimated' } as const, '10'],
  ])('that is %s gives back the reservation and spends what it cost', async (_, end, spent) => {
    const { run, claim } = await claimed(10n);
    await settleAttempt(db, anEnd(claim, end));
    await settleAttempt(db, anEnd(claim, end));
    const now = { limit: '100', reserved: '0', spent };
    expect(await budgetsAround(run)).toEqual({ ...now, project: now, capability: { ...now, limit: null } });
  });

  it('that is found by its lease spends all, until the truth corrects it', async () => {
    const { run, claim } = await claimed(10n, { lease_ms: -10_000 });
    expect(await loseExpiredAttempts(db)).toBe(1);
    expect(await budgetsAround(run)).toMatchObject({ reserved: '0', spent: '10', project: { spent: '10' } });
    expect(await settleAttempt(db, anEnd(claim, { settled_nano: 3n }))).toBe(false);
    expect(await budgetsAround(run)).toMatchObject({ reserved: '0', spent: '3', project: { spent: '3' } });
    await settleAttempt(db, anEnd(claim, { settled_nano: 9n }));
    expect(await budgetsAround(run)).toMatchObject({ spent: '3', capability: { spent: '3' } });
  });

  it('after midnight counts on the day of the admission', async () => {
    const { run, claim } = await claimed(10n);
    await passMidnight(db);
    await settleAttempt(db, anEnd(claim, { settled_nano: 10n }));
    const rows = await db('budget')
      .where({ scope: `project:${run.project_id}` })
      .select(db.raw(`(now() at time zone 'UTC')::date - window_start as age`), 'spent_nano');
    expect(rows).toEqual([{ age: 1, spent_nano: '10' }]);
    const next = aPaidClaim(run, 90n, { step_id: 'b' });
    expect(await outcomesOf([next])).toEqual(['claimed']);
    expect(await findDrift(db)).toEqual([]);
  });

  it('of an attempt from yesterday that is superseded today counts on its own day', async () => {
    const { run, claim } = await claimed(10n);
    await passMidnight(db);
    expect(await outcomesOf([aPaidClaim(run, 20n)])).toEqual(['claimed']);
    const rows = await db('budget')
      .where({ scope: `project:${run.project_id}` })
      .orderBy('window_start')
      .select('reserved_nano', 'spent_nano');
    expect(rows).toEqual([
      { reserved_nano: '0', spent_nano: '10' },
      { reserved_nano: '20', spent_nano: '0' },
    ]);
    expect(await settleAttempt(db, anEnd(claim))).toBe(false);
    expect(await findDrift(db)).toEqual([]);
  });
});

describe('the marks of a run', () => {
  const spend = async (run: StoredRun, step_id: string, amount: bigint): Promise<Claim> => {
    const claim = aPaidClaim(run, amount, { step_id });
    await claimAttempt(db, claim);
    await settleAttempt(db, anEnd(claim, { settled_nano: amount }));
    return claim;
  };
  const usd = (nano: number): number => nano / 1e9;
  const mark = (percent: number, spent: number, limit = 100) => ({
    percent,
    limit_usd: usd(limit),
    spent_usd: usd(spent),
  });

  it('are reported once each when spending passes 50, 80 and 100 %', async () => {
    const run = await aBudgetedRun({ run: 100n });
    await spend(run, 'a', 49n);
    expect(await marksOf(run)).toEqual([]);
    await spend(run, 'b', 1n);
    await spend(run, 'c', 29n);
    expect(await marksOf(run)).toEqual([mark(50, 50)]);
    await spend(run, 'd', 21n);
    expect(await marksOf(run)).toEqual([mark(50, 50), mark(80, 100), mark(100, 100)]);
  });

  it('are not reported again when a correction falls below one and spending passes it again', async () => {
    const run = await aBudgetedRun({ run: 100n });
    const lost = aPaidClaim(run, 60n, { lease_ms: -10_000 });
    await claimAttempt(db, lost);
    await loseExpiredAttempts(db);
    await settleAttempt(db, anEnd(lost, { settled_nano: 10n }));
    await spend(run, 'b', 45n);
    expect(await marksOf(run)).toEqual([mark(50, 60)]);
  });

  it('report a call that was refused though nothing is reserved, once', async () => {
    const run = await aBudgetedRun({ run: 100n });
    await spend(run, 'a', 30n);
    for (const step_id of ['b', 'c']) {
      expect(await outcomesOf([aPaidClaim(run, 80n, { step_id })])).toEqual(['over_budget']);
    }
    expect(await marksOf(run)).toEqual([{ ...mark(100, 30), refused_usd: usd(80) }]);
  });

  it('are not set by a refusal that settlements may cure', async () => {
    const run = await aBudgetedRun({ run: 100n });
    await claimAttempt(db, aPaidClaim(run, 60n));
    expect(await outcomesOf([aPaidClaim(run, 60n, { step_id: 'b' })])).toEqual(['over_budget']);
    expect(await marksOf(run)).toEqual([]);
  });
});
