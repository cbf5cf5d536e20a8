import { noMetrics } from '@capstan/core/telemetry/telemetry';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { setProjectLimit } from '../../src/db/money/budget.ts';
import { findDrift } from '../../src/db/money/budget-drift.ts';
import { finishRun } from '../../src/db/run/run.ts';
import { createBudgetKeeper } from '../../src/parts/budget-keeper.ts';
import { budgetsOf } from '../support/budgets.ts';
import { useDatabase } from '../support/database.ts';
import {
  aClaim,
  anEnd,
  anInstance,
  aProject,
  aRun,
  claimAttempt,
  type StoredRun,
  settleAttempt,
} from '../support/factories.ts';

const { db } = useDatabase();

/** A keeper and what it logged since it was last asked. */
function aKeeper(now?: () => number) {
  const lines: Record<string, unknown>[] = [];
  const logger = pino(
    { base: null, timestamp: false },
    { write: (line: string) => void lines.push(JSON.parse(line)) },
  );
  return {
    keeper: createBudgetKeeper({ db, logger, metrics: noMetrics, ...(now === undefined ? {} : { now }) }),
    told: () => lines.splice(0),
  };
}

async function spend(run: StoredRun, step_id: string, nano: bigint): Promise<void> {
  const paid = await anInstance(db, { cost_type: 'per_call', rate_usd: 1 });
  const claim = aClaim(run, paid, { step_id, reserved_nano: nano });
  await claimAttempt(db, claim);
  await settleAttempt(db, anEnd(claim, { settled_nano: nano }));
}

const usd = 1_000_000_000n;

describe('the marks of a budget', () => {
  it('are logged once each, by one of two processes, and again under a new limit', async () => {
    const { project_id } = await aProject(db, { daily_limit_nano: 10n * usd });
    const run = await aRun(db, { project_id });
    const [one, other] = [aKeeper(), aKeeper()];
    const announce = async () => {
      await Promise.all([one.keeper.announceMarks(), other.keeper.announceMarks()]);
      return [...one.told(), ...other.told()];
    };
    const day = new Date().toISOString().slice(0, 10);
    const mark = (level: number, percent: number, limit_usd: number, spent_usd: number) => ({
      level,
      scope: `project:${project_id}`,
      day,
      percent,
      limit_usd,
      spent_usd,
      msg: 'budget reached',
    });

    await spend(run, 'a', 4n * usd);
    expect(await announce()).toEqual([]);
    await spend(run, 'b', 2n * usd);
    expect(await announce()).toEqual([mark(30, 50, 10, 6)]);
    await spend(run, 'c', 4n * usd);
    expect(await announce()).toEqual([mark(40, 80, 10, 10), mark(40, 100, 10, 10)]);
    expect(await announce()).toEqual([]);
    const told = await db('event').where({ run_id: run.run_id, type: 'run.budget_reached' }).pluck('data');
    const facts = { scope: 'project', day, limit_usd: 10 };
    expect(told).toEqual([
      { ...facts, percent: 50, spent_usd: 6 },
      { ...facts, percent: 80, spent_usd: 10 },
      { ...facts, percent: 100, spent_usd: 10 },
    ]);

    await setProjectLimit(db, project_id, 20n * usd);
    expect(await announce()).toEqual([]);
    await spend(run, 'd', 6n * usd);
    expect(await announce()).toEqual([mark(40, 80, 20, 16)]);
    await setProjectLimit(db, project_id, null);
    expect(await announce()).toEqual([]);
  });

  it('of all projects are reported to the runs of each without figures: the sums of others stay secret', async () => {
    const run = await aRun(db);
    await spend(run, 'a', 1n * usd);
    const day = { scope: 'global', window_start: new Date().toISOString().slice(0, 10) };
    await db('budget')
      .where(day)
      .update({ limit_nano: db.raw('spent_nano * 2'), reached_50_at: new Date() });
    const { keeper, told } = aKeeper();
    await keeper.announceMarks();
    expect(told()).toMatchObject([{ scope: 'global', percent: 50, spent_usd: expect.any(Number) }]);
    const events = await db('event').where({ run_id: run.run_id, type: 'run.budget_reached' }).pluck('data');
    expect(events).toEqual([{ scope: 'global', day: day.window_start, percent: 50 }]);
    await db('budget').where(day).update({ limit_nano: null });
  });

  it('name the run instead of a day', async () => {
    const run = await aRun(db, { budget_ceiling_usd: 1 });
    await spend(run, 'a', usd / 2n);
    const { keeper, told } = aKeeper();
    await keeper.announceMarks();
    const facts = { level: 30, scope: `run:${run.run_id}`, percent: 50, limit_usd: 1, spent_usd: 0.5 };
    expect(told()).toEqual([{ ...facts, msg: 'budget reached' }]);
  });
});

describe('reconciling', () => {
  it('changes and logs nothing when nothing is wrong', async () => {
    const run = await aRun(db);
    await spend(run, 'a', 5n);
    const before = await budgetsOf(db, '');
    const { keeper, told } = aKeeper();
    expect([await keeper.reconcile(), told(), await budgetsOf(db, '')]).toEqual([0, [], before]);
  });

  it('corrects by the difference, logs what was missing, and adds what is gone', async () => {
    const { project_id } = await aProject(db, { daily_limit_nano: 100n * usd });
    const run = await aRun(db, { project_id });
    const paid = await anInstance(db, { cost_type: 'per_call', rate_usd: 1 });
    const open = aClaim(run, paid, { step_id: 'open', reserved_nano: 3n * usd });
    await claimAttempt(db, open);
    await spend(run, 'done', 2n * usd);
    const right = await budgetsOf(db, '');
    const project = `project:${project_id}`;
    await db('budget')
      .where({ scope: project })
      .update({ reserved_nano: 0, spent_nano: `${9n * usd}` });
    await db('budget')
      .where({ scope: `capability:${project_id}:concat` })
      .delete();
    await db('budget')
      .where({ scope: `run:${run.run_id}` })
      .increment('spent_nano', 5);

    const { keeper, told } = aKeeper();
    expect(await keeper.reconcile()).toBe(3);
    const day = new Date().toISOString().slice(0, 10);
    const msg = 'a budget differed from its attempts and was corrected';
    expect(told()).toEqual([
      {
        level: 50,
        scope: `capability:${project_id}:concat`,
        day,
        missing: { reserved_usd: 3, spent_usd: 2 },
        msg,
      },
      { level: 50, scope: project, day, missing: { reserved_usd: 3, spent_usd: -7 }, msg },
      { level: 50, scope: `run:${run.run_id}`, missing: { reserved_usd: 0, spent_usd: -5e-9 }, msg },
    ]);
    expect([await findDrift(db), await budgetsOf(db, '')]).toEqual([[], right]);
    await settleAttempt(db, anEnd(open, { settled_nano: 1n }));
    expect(await keeper.reconcile()).toBe(0);
  });

  it('reads the attempts of a few days and of open runs only, by index', async () => {
    const plans: string[] = [];
    const trx = await db.transaction();
    await trx.raw('set local enable_seqscan = off');
    trx.on('query', ({ sql }: { sql: string }) => void plans.push(sql));
    await findDrift(trx);
    const { rows } = await trx.raw(`explain (generic_plan) ${plans[0]}`);
    await trx.rollback();
    const plan = rows.map((row: Record<string, string>) => row['QUERY PLAN']).join('\n');
    for (const index of ['attempt_paid', 'budget_by_day', 'run_open', 'attempt_by_run', 'budget_pkey']) {
      expect(plan).toContain(index);
    }
    expect(plan).not.toContain('Seq Scan');
  });

  describe('keeps the sums of what ended long ago', () => {
    const day = 86_400_000;

    /** Two calls for 3 and 4 nano that ended an hour ago. */
    async function anHourAgo() {
      const { project_id } = await aProject(db);
      const run = await aRun(db, { project_id });
      await spend(run, 'a', 3n);
      await spend(run, 'b', 4n);
      await finishRun(db, {
        run_id: run.run_id,
        state: 'succeeded',
        output: null,
        error: null,
        step_ids: [],
      });
      await db('attempt')
        .where({ project_id })
        .update({ finished_at: db.raw(`finished_at - interval '1 hour'`) });
      return { project_id, scope: `project:${project_id}`, a: { project_id, step_id: 'a' } };
    }

    it('and does not read them again for a day', async () => {
      const { a, scope } = await anHourAgo();
      let clock = 0;
      const { keeper, told } = aKeeper(() => clock);
      expect(await keeper.reconcile()).toBe(0);
      await db('attempt').where(a).update({ settled_nano: 2 }); // by hand
      clock = day;
      expect(await keeper.reconcile()).toBe(0);
      clock = day + 1;
      expect(await keeper.reconcile()).toBe(3);
      expect(told()).toContainEqual(
        expect.objectContaining({ scope, missing: { reserved_usd: 0, spent_usd: -1e-9 } }),
      );
    });

    it('sees a budget that differs from them', async () => {
      const { scope } = await anHourAgo();
      const { keeper, told } = aKeeper();
      expect(await keeper.reconcile()).toBe(0);
      await db('budget').where({ scope }).increment('spent_nano', 5);
      expect(await keeper.reconcile()).toBe(1);
      expect(told()).toMatchObject([{ scope, missing: { spent_usd: -5e-9 } }]);
      expect(await keeper.reconcile()).toBe(0);
    });

    it('adds later ends, and corrects nothing when one of them is settled again', async () => {
      const { project_id, a } = await anHourAgo();
      const { keeper, told } = aKeeper();
      expect(await keeper.reconcile()).toBe(0);
      await spend(await aRun(db, { project_id }), 'later', 7n);
      expect(await keeper.reconcile()).toBe(0);
      await db.transaction(async (trx) => {
        await trx('attempt').where(a).update({ settled_nano: 1 });
        const scopes = ['global', `project:${project_id}`, `capability:${project_id}:concat`];
        await trx('budget')
          .whereIn('scope', scopes)
          .whereRaw(`window_start > '-infinity'`)
          .decrement('spent_nano', 2);
      });
      expect([await keeper.reconcile(), told()]).toEqual([0, []]);
    });
  });
});
