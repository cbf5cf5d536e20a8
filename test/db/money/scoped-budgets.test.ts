import type { BudgetPeriod, ScopeAndPeriod } from '@capstan/core/contracts/money';
import { scopesOfCall } from '@capstan/core/money/scoped-budget';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Claim, loseExpiredAttempts } from '../../../src/db/attempt/attempt.ts';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import type { InstanceColumns } from '../../../src/db/instance/instance.ts';
import { takeNewMarks } from '../../../src/db/money/budget.ts';
import { addEnded, correctDrift, findDrift } from '../../../src/db/money/budget-drift.ts';
import {
  deleteEmptyBatches,
  deleteScopedBudget,
  listScopedBudgets,
  lockScopedBudgets,
  readScopedRow,
  rowOfScoped,
  setScopedBudget,
} from '../../../src/db/money/scoped-budget.ts';
import { budgetsOf, daysAt, reserveAt } from '../../support/budgets.ts';
import { useDatabase } from '../../support/database.ts';
import {
  aClaim,
  anEnd,
  anInstance,
  aProject,
  aRun,
  claimAttempt,
  claimAttempts,
  settleAttempt,
  settleAttempts,
} from '../../support/factories.ts';
import { isLong } from '../../support/long.ts';

/** Of each of four processes. A connection costs as much as many claims. */
const poolSize = isLong ? 12 : 4;
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

type Limits = Readonly<Record<string, bigint>>;

function readName(name: string): ScopeAndPeriod {
  const at = name.indexOf(' ');
  return { period: name.slice(0, at) as BudgetPeriod, scope: name.slice(at + 1) };
}

async function setLimit(projectId: string, name: string, limitNano: bigint): Promise<void> {
  await db.transaction(async (trx) => {
    await lockScopedBudgets(trx, projectId);
    await setScopedBudget(trx, projectId, { ...readName(name), limitNano, soft: 0.8 });
  });
}

/** @param limits by `day key:k` and so on */
async function aLimitedProject(limits: Limits, timezone = 'UTC'): Promise<string> {
  const { project_id } = await aProject(db, { timezone });
  for (const [name, limit] of Object.entries(limits)) await setLimit(project_id, name, limit);
  return project_id;
}

interface Source {
  readonly key?: string;
  readonly user?: string;
  readonly team?: string;
}

/** A direct call that reserves 1 nano-USD. */
function aCall(project_id: string, { key = 'k', user, team }: Source = {}, over: Partial<Claim> = {}): Claim {
  const labels: Record<string, string> = team === undefined ? {} : { team };
  const claim = aClaim({ run_id: '', project_id }, paid, { step: null, is_first: true, ...over });
  const reserved_nano = over.reserved_nano ?? 1n;
  return {
    ...claim,
    key: claim.attempt_id,
    reserved_nano,
    scopes: scopesOfCall({ keyId: key, user, labels }),
  };
}

/** Spent and reserved amounts by `day key:k` and so on; of several windows, the last. */
async function sumsOf(projectId: string): Promise<Record<string, string>> {
  const prefix = `budget:${projectId}:`;
  return Object.fromEntries(
    Object.entries(await budgetsOf(db, prefix)).map(([scope, { limit, spent, reserved }]) => [
      scope.slice(prefix.length).replace(':', ' '),
      `${spent}+${reserved}/${limit}`,
    ]),
  );
}

async function claimInParallel(claims: readonly Claim[]): Promise<readonly Claim[]> {
  const results = await Promise.all(
    claims.map((claim, at) => claimAttempt(pools[at % pools.length] ?? db, claim)),
  );
  return claims.filter((_, at) => results[at]?.outcome === 'claimed');
}

describe('parallel claims', () => {
  it('are admitted as far as the tightest of eight budgets has room, and all of it returns', async () => {
    const names = ['key:k', 'user:u', 'capability:concat', 'label:team=ads'];
    const limits = Object.fromEntries(
      names.flatMap((name, at) => [
        [`day ${name}`, BigInt(70 + at)],
        [`month ${name}`, BigInt(60 + at)],
      ]),
    );
    const project = await aLimitedProject(limits);
    const source = { key: 'k', user: 'u', team: 'ads' };
    const admitted = await claimInParallel(Array.from({ length: 120 }, () => aCall(project, source)));
    expect(admitted).toHaveLength(60);
    expect(await sumsOf(project)).toEqual(
      Object.fromEntries(Object.entries(limits).map(([name, limit]) => [name, `0+60/${limit}`])),
    );
    expect(await findDrift(db)).toEqual([]);

    const release = { state: 'released', ambiguity: 'not_sent' } as const;
    await Promise.all(
      admitted.map((claim, at) =>
        at % 3 === 0
          ? db('attempt')
              .where({ attempt_id: claim.attempt_id })
              .update({ lease_until: new Date(0) })
          : settleAttempts(pools[at % 4] ?? db, [
              anEnd(claim, at % 3 === 1 ? { settled_nano: 1n } : release),
            ]),
      ),
    );
    while ((await loseExpiredAttempts(db)) > 0);
    expect(await sumsOf(project)).toEqual(
      Object.fromEntries(Object.entries(limits).map(([name, limit]) => [name, `40+0/${limit}`])),
    );
    // The truth about an expired lease arrives later.
    await settleAttempts(
      db,
      admitted.slice(0, 1).map((claim) => anEnd(claim, { settled_nano: 0n })),
    );
    expect((await sumsOf(project))['month key:k']).toBe('39+0/60');
    expect(await findDrift(db)).toEqual([]);
  });

  it('of several keys, users and teams fill each budget exactly, and never deadlock', async () => {
    const limits = { 'day key:k0': 20n, 'month user:u1': 30n, 'day label:team=t2': 10n, 'day user:u0': 25n };
    const project = await aLimitedProject({ ...limits, 'month capability:concat': 75n });
    const source = (at: number) => ({ key: `k${at % 2}`, user: `u${at % 3}`, team: `t${at % 5}` });
    const admitted = await claimInParallel(
      Array.from({ length: 200 }, (_, at) => aCall(project, source(at))),
    );
    expect(admitted).toHaveLength(75);
    const sums = await sumsOf(project);
    expect(sums['month capability:concat']).toBe('0+75/75');
    await Promise.all(admitted.map((claim) => settleAttempt(db, anEnd(claim, { settled_nano: 1n }))));
    const { rows } = await db.raw(`select count(*)::int as held from budget where reserved_nano <> 0`);
    expect(rows).toEqual([{ held: 0 }]);
    expect(await findDrift(db)).toEqual([]);
    const deadlocks = await db.raw(
      'select deadlocks::int from pg_stat_database where datname = current_database()',
    );
    expect(deadlocks.rows).toEqual([{ deadlocks: 0 }]);
  });
});

describe('a scoped budget', () => {
  it('refuses by its name, its figures and the end of its window', async () => {
    const project = await aLimitedProject({ 'month label:team=ads': 2n, 'day key:k': 5n }, 'Europe/Berlin');
    const calls = Array.from({ length: 3 }, () => aCall(project, { team: 'ads' }));
    const results = [];
    for (const call of calls) results.push(await claimAttempt(db, call));
    const { rows } = await db.raw(
      `select day_start((date_trunc('month', now() at time zone 'Europe/Berlin') + interval '1 month')::date, 'Europe/Berlin') as at`,
    );
    const refused = results[2] as { output: { resets_at: string } };
    expect(refused).toMatchObject({
      outcome: 'over_budget',
      output: {
        scope: 'label',
        budget: 'label:team=ads',
        period: 'month',
        run_id: null,
        limit_nano: '2',
        spent_nano: '0',
        reserved_nano: '2',
      },
    });
    expect(new Date(refused.output.resets_at)).toEqual(rows[0].at);
    expect(await claimAttempt(db, aCall(project, { team: 'web' }))).toMatchObject({ outcome: 'claimed' });
  });

  it('counts calls of a run, and of the runs below it, by the key and the labels of the run at the top', async () => {
    const project_id = await aLimitedProject({ 'day key:k': 3n, 'day label:team=ads': 9n });
    const run = await aRun(db, { project_id, key_id: 'k', labels: { team: 'ads' } });
    const below = { project_id, parent_run_id: run.run_id, parent_step_id: 'c', parent_item: 0 };
    const child = await aRun(db, below);
    const claims = [run, child, child, run].map((of, at) =>
      aClaim(of, paid, { step_id: `s${at}`, reserved_nano: 1n }),
    );
    const outcomes = [];
    for (const claim of claims) outcomes.push((await claimAttempt(db, claim)).outcome);
    expect(outcomes).toEqual(['claimed', 'claimed', 'claimed', 'over_budget']);
    expect(await sumsOf(project_id)).toEqual({ 'day key:k': '0+3/3', 'day label:team=ads': '0+3/9' });
  });

  it('admits of one batch as many as fit', async () => {
    const project = await aLimitedProject({ 'day user:u': 2n });
    const results = await claimAttempts(
      db,
      ['u', 'v', 'u', 'u'].map((user) => aCall(project, { user })),
    );
    expect(results.map(({ outcome }) => outcome)).toEqual(['claimed', 'claimed', 'claimed', 'over_budget']);
  });

  it('does not count free calls, or those of another project', async () => {
    const project = await aLimitedProject({ 'day key:k': 1n });
    const other = await aLimitedProject({});
    await claimAttempt(db, aCall(project, {}, { reserved_nano: 0n }));
    await claimAttempt(db, aCall(other));
    expect(await sumsOf(project)).toEqual({});
    expect(await sumsOf(other)).toEqual({});
    expect(await db('attempt').where({ project_id: other }).select('scopes', 'budgets')).toEqual([
      { scopes: ['key:k'], budgets: null },
    ]);
  });

  it('counts from its creation on, a new limit holds at once, and without it none holds', async () => {
    const project = await aLimitedProject({});
    const early = aCall(project);
    await claimAttempt(db, early);
    await setLimit(project, 'month key:k', 1n);
    const calls = Array.from({ length: 4 }, () => aCall(project));
    const outcome = async (at: number) => (await claimAttempt(db, calls[at] as Claim)).outcome;
    expect([await outcome(0), await outcome(1)]).toEqual(['claimed', 'over_budget']);
    await setLimit(project, 'month key:k', 2n);
    expect(await outcome(2)).toBe('claimed');
    const key = { scope: 'key:k', period: 'month' } as const;
    expect(await db.transaction((trx) => deleteScopedBudget(trx, project, key))).toBe(true);
    expect(await outcome(3)).toBe('claimed');
    await settleAttempts(
      db,
      [early, calls[0] as Claim].map((claim) => anEnd(claim, { settled_nano: 1n })),
    );
    expect(await sumsOf(project)).toEqual({ 'month key:k': '1+1/null' });
    expect(await listScopedBudgets(db, project)).toEqual([]);
    expect(await db('project').where({ project_id: project }).pluck('has_budgets')).toEqual([false]);
    expect(await findDrift(db)).toEqual([]);
  });

  it('holds for every claim that begins after it was set, while others claim', async () => {
    const project = await aLimitedProject({});
    const claimSome = async (pool: Db) => {
      for (let n = 0; n < 12; n++) await claimAttempts(pool, [aCall(project), aCall(project)]);
    };
    const working = others.map(claimSome);
    await claimAttempt(db, aCall(project));
    await setLimit(project, 'day key:k', 3n);
    const late = Array.from({ length: 12 }, () => aCall(project));
    const admitted = await claimInParallel(late);
    await Promise.all(working);
    const ids = admitted.map(({ attempt_id }) => attempt_id);
    const free = await db('attempt').whereIn('attempt_id', ids).whereNull('budgets').pluck('attempt_id');
    expect(free).toEqual([]);
    const held = await db('attempt').where({ project_id: project }).whereNotNull('budgets');
    expect(held).toHaveLength(3);
    expect(await sumsOf(project)).toEqual({ 'day key:k': '0+3/3' });
    expect(await findDrift(db)).toEqual([]);
  });

  it('marks its soft share once in a window', async () => {
    const project = await aLimitedProject({ 'day key:k': 4n });
    await db.transaction((trx) =>
      setScopedBudget(trx, project, { scope: 'key:k', period: 'day', limitNano: 4n, soft: 0.7 }),
    );
    const spend = async () => {
      const call = aCall(project);
      await claimAttempt(db, call);
      await settleAttempt(db, anEnd(call, { settled_nano: 1n }));
      const marks = await takeNewMarks(db);
      return marks
        .filter(({ scope }) => scope.startsWith(`budget:${project}`))
        .map(({ percents }) => percents);
    };
    expect([await spend(), await spend(), await spend(), await spend()]).toEqual([[], [], [[70]], [[100]]]);
  });
});

describe('windows', () => {
  /** zone, moment, the local day, the first of its month, when the month ends */
  const cases = [
    ['UTC', '2026-03-31T23:59:59.999Z', '2026-03-31', '2026-03-01', '2026-04-01T00:00:00Z'],
    ['Pacific/Kiritimati', '2026-03-31T10:00:00Z', '2026-04-01', '2026-04-01', '2026-04-30T10:00:00Z'],
    // a month with a change of clocks
    ['Europe/Berlin', '2026-02-28T23:00:00Z', '2026-03-01', '2026-03-01', '2026-03-31T22:00:00Z'],
    ['Europe/Berlin', '2026-10-31T22:59:59Z', '2026-10-31', '2026-10-01', '2026-10-31T23:00:00Z'],
    ['America/New_York', '2026-11-01T03:59:59Z', '2026-10-31', '2026-10-01', '2026-11-01T04:00:00Z'],
    ['Asia/Beirut', '2025-03-29T22:00:00Z', '2025-03-30', '2025-03-01', '2025-03-31T21:00:00Z'],
    ['UTC', '2028-02-29T12:00:00Z', '2028-02-29', '2028-02-01', '2028-03-01T00:00:00Z'],
  ] as const;

  it.each(cases)('in %s at %s are %s and the month of %s', async (timezone, at, day, month, ends) => {
    const project = await aLimitedProject({ 'month key:k': 1n }, timezone);
    const claim = { ...aCall(project), budgets: ['day:key:k', 'month:key:k'] };
    expect(await daysAt(db, claim, at)).toMatchObject({
      [`budget:${project}:day:key:k`]: day,
      [`budget:${project}:month:key:k`]: month,
    });
    expect(await reserveAt(db, [claim], at)).toBeNull();
    const refusal = await reserveAt(db, [claim], at);
    expect(refusal).toMatchObject({ scope: 'key', budget: 'key:k', period: 'month' });
    expect(new Date(refusal.resets_at).toISOString()).toBe(new Date(ends).toISOString());
    expect(await reserveAt(db, [claim], new Date(Date.parse(ends) - 1).toISOString())).not.toBeNull();
    expect(await reserveAt(db, [claim], ends)).toBeNull();
    await db('budget').whereLike('scope', `%:${project}%`).delete();
    await db('budget').where('scope', 'global').whereNot('window_start', '-infinity').delete();
  });
});

describe('a budget by total', () => {
  /** Instants around midnights of Berlin, with a change of month, of year and of clocks. */
  const moments = [
    '2025-12-31T22:59:59.999Z',
    '2025-12-31T23:00:00Z',
    '2026-03-28T22:59:59Z',
    '2026-03-28T23:00:00Z',
    '2026-03-31T21:59:59.999Z',
    '2026-03-31T22:00:00Z',
    '2033-01-01T00:00:00Z',
  ];

  it('admits of parallel claims over midnights of any years as many as fit, and returns what they leave', async () => {
    const project = await aLimitedProject(
      { 'total label:team=ads': 30n, 'day key:k': 1_000n },
      'Europe/Berlin',
    );
    const budgets = ['total:label:team=ads', 'day:key:k'];
    const calls = Array.from({ length: 84 }, () => ({ ...aCall(project, { team: 'ads' }), budgets }));
    const refusals = await Promise.all(
      calls.map((call, at) =>
        reserveAt(pools[at % pools.length] ?? db, [call], moments[at % moments.length] ?? ''),
      ),
    );
    const refused = refusals.filter((refusal) => refusal !== null);
    expect(refused).toHaveLength(54);
    for (const refusal of refused)
      expect(refusal).toMatchObject({
        budget: 'label:team=ads',
        period: 'total',
        limit_nano: '30',
        resets_at: null,
      });
    expect((await sumsOf(project))['total label:team=ads']).toBe('0+30/30');
    expect(await db('budget').where({ scope: `budget:${project}:total:label:team=ads` })).toHaveLength(1);
    await db('budget').whereLike('scope', `%:${project}%`).delete();
    await db('budget').where('scope', 'global').whereNot('window_start', '-infinity').delete();
  });

  it('is exact over parallel claims and ends of several keys, and never deadlocks', async () => {
    const limits = {
      'total key:k0': 9n,
      'total key:k1': 14n,
      'month key:k1': 12n,
      'total capability:concat': 20n,
    };
    const project = await aLimitedProject(limits);
    const calls = Array.from({ length: 80 }, (_, at) => aCall(project, { key: `k${at % 2}` }));
    const admitted = await claimInParallel(calls);
    expect(admitted).toHaveLength(20);
    await Promise.all(
      admitted.map((claim, at) =>
        settleAttempt(
          pools[at % pools.length] ?? db,
          anEnd(claim, at % 2 === 0 ? { settled_nano: 1n } : { state: 'released', ambiguity: 'not_sent' }),
        ),
      ),
    );
    const sums = await sumsOf(project);
    expect(sums['total capability:concat']).toBe('10+0/20');
    expect((await findDrift(db)).filter(({ scope }) => scope.includes(project))).toEqual([]);
    const again = await claimInParallel(Array.from({ length: 40 }, () => aCall(project, { key: 'k1' })));
    const spent = Number(sums['month key:k1']?.split('+')[0]);
    expect(again).toHaveLength(Math.min(12 - spent, 10));
    expect((await findDrift(db)).filter(({ scope }) => scope.includes(project))).toEqual([]);
  });

  it('keeps what it has spent when the calls are deleted, is removed, is added again or the zone changes', async () => {
    const project = await aLimitedProject({ 'total user:u': 3n });
    const calls = [0, 1].map(() => aCall(project, { user: 'u' }));
    await claimAttempts(db, calls);
    await settleAttempts(
      db,
      calls.map((claim) => anEnd(claim, { settled_nano: 1n })),
    );
    const ids = calls.map(({ attempt_id }) => attempt_id);
    await db('attempt').whereIn('attempt_id', ids).update({ budget_window: '2001-01-01' });
    await db('attempt_choice').whereIn('attempt_id', ids).delete();
    await db('attempt').whereIn('attempt_id', ids).delete();
    const scope = { scope: 'user:u', period: 'total' } as const;
    await db.transaction((trx) => deleteScopedBudget(trx, project, scope));
    expect(await sumsOf(project)).toEqual({ 'total user:u': '2+0/null' });
    await setLimit(project, 'total user:u', 4n);
    await db('project').where({ project_id: project }).update({ timezone: 'Pacific/Kiritimati' });
    const [row] = await listScopedBudgets(db, project);
    expect(row).toMatchObject({ period: 'total', spent_nano: '2', window: null, resets_at: null });
    const admitted = await claimInParallel([0, 1, 2, 3].map(() => aCall(project, { user: 'u' })));
    expect(admitted).toHaveLength(2);
  });

  it.each([
    ['of this month', 0, { spent_nano: '-4', reserved_nano: '-7' }, '1+1/9'],
    // The ledger may have lost the entries of the first months.
    ['of last year', 400, { spent_nano: '0', reserved_nano: '-7' }, '5+1/9'],
  ])('%s is compared with its calls', async (_, days, difference, corrected) => {
    const project = await aLimitedProject({ 'total key:k': 9n });
    const calls = [0, 1].map(() => aCall(project));
    await claimAttempts(db, calls);
    await settleAttempt(db, anEnd(calls[0] as Claim, { settled_nano: 1n }));
    const scope = `budget:${project}:total:key:k`;
    const found = async () =>
      (await findDrift(db, await addEnded(db, null))).filter((row) => row.scope === scope);
    await db('budget')
      .where({ scope })
      .update({ opened_at: db.raw(`now() - ? * interval '1 day'`, [days]) });
    expect(await found()).toEqual([]);
    await db('budget').where({ scope }).update({ spent_nano: 5, reserved_nano: 8, limit_nano: null });
    expect(await found()).toMatchObject([{ day: '-infinity', ...difference }]);
    await correctDrift(db);
    expect((await sumsOf(project))['total key:k']).toBe(corrected.replace('/9', '/null'));
    expect(await found()).toEqual([]);
  });

  it('of a batch is removed a day after the last run of the batch was deleted', async () => {
    const limits = {
      'total label:batch=bat_a': 1n,
      'total label:batch=bat_b': 1n,
      'total label:batch=7': 1n,
    };
    const project_id = await aLimitedProject({ ...limits, 'total label:batch=bat_c': 1n });
    await db('scoped_budget')
      .where({ project_id })
      .update({ created_at: db.raw(`now() - interval '2 days'`) });
    await setLimit(project_id, 'total label:batch=bat_new', 1n);
    await aRun(db, { project_id, labels: { batch: 'bat_b', team: 'ads' } });
    await db.transaction((trx) => deleteEmptyBatches(trx, project_id));
    const left = (await listScopedBudgets(db, project_id)).map(({ scope }) => scope);
    expect(left).toEqual(['label:batch=7', 'label:batch=bat_b', 'label:batch=bat_new']);
  });
});

describe('the drift check', () => {
  it('computes each scoped budget again from the ledger, also when the calls are deleted', async () => {
    const project = await aLimitedProject({ 'month key:k': 100n, 'day user:u': 100n });
    const calls = Array.from({ length: 4 }, () => aCall(project, { user: 'u' }));
    await claimAttempts(db, calls);
    await settleAttempts(
      db,
      calls.slice(1).map((claim) => anEnd(claim, { settled_nano: 1n })),
    );
    const known = await addEnded(db, null);
    const rows = () => findDrift(db).then((all) => all.filter(({ scope }) => scope.includes(project)));
    expect(await findDrift(db, known)).toEqual(await findDrift(db));
    expect(await rows()).toEqual([]);

    const gone = calls.slice(2).map(({ attempt_id }) => attempt_id);
    await db('attempt').whereIn('attempt_id', gone).update({ budget_window: '2001-01-01' });
    await db('attempt_choice').whereIn('attempt_id', gone).delete();
    await db('attempt').whereIn('attempt_id', gone).delete();
    expect((await rows()).filter(({ scope }) => scope.startsWith('budget:'))).toEqual([]);

    const scope = `budget:${project}:month:key:k`;
    await db('budget').where({ scope }).update({ spent_nano: 50, reserved_nano: 7 });
    expect((await rows()).filter((row) => row.scope === scope)).toMatchObject([
      { reserved_nano: '-6', spent_nano: '-47' },
    ]);
    await correctDrift(db);
    expect(await sumsOf(project)).toEqual({ 'month key:k': '3+1/100', 'day user:u': '3+1/100' });
  });
});

it.each(['key:k', 'label:a:b=c:d\ne', 'user:x:day:y'])(
  'the name of its row identifies the budget of %j',
  (scope) => {
    for (const period of ['month', 'total'] as const) {
      const row = rowOfScoped('prj_1', { scope, period });
      expect(readScopedRow(row)).toEqual({ projectId: 'prj_1', period, scope });
      expect(readScopedRow(`project:${row}`)).toBeNull();
    }
  },
);
