import { describe, expect, it } from 'vitest';
import { loseExpiredAttempts } from '../../../src/db/attempt/attempt.ts';
import { setRunLimit } from '../../../src/db/money/budget.ts';
import { correctDrift } from '../../../src/db/money/budget-drift.ts';
import { finishRun, insertRuns, openRun } from '../../../src/db/run/run.ts';
import { requestCancel, setRunCeiling } from '../../../src/db/run/run-control.ts';
import { listRuns, readRun } from '../../../src/db/run/run-list.ts';
import { keepWaiting, recordDecisions } from '../../../src/db/step/step-progress.ts';
import { budgetsOf } from '../../support/budgets.ts';
import { useDatabase } from '../../support/database.ts';
import {
  aClaim,
  anEnd,
  anInstance,
  aRun,
  claimAttempt,
  claimAttempts,
  type RunOverrides,
  type StoredRun,
  settleAttempt,
} from '../../support/factories.ts';
import { findDrift } from '../../support/invariants.ts';
import { waitFor } from '../../support/wait.ts';

const { db } = useDatabase(6);

function aPaid() {
  return anInstance(db, { cost_type: 'per_call', rate_usd: 1, max_concurrency: 100 });
}
function below(parent: StoredRun, over: RunOverrides = {}): Promise<StoredRun> {
  return aRun(db, {
    project_id: parent.project_id,
    parent_run_id: parent.run_id,
    parent_step_id: 'a',
    parent_item: 0,
    parent_revision: 0,
    ...over,
  });
}
/** A run with this ceiling in nano-USD, one below it, one below that. */
async function aLine(ceilings: readonly (number | null)[] = []) {
  const usd = (index: number) => (ceilings[index] == null ? null : Number(ceilings[index]) / 1e9);
  const top = await aRun(db, { budget_ceiling_usd: usd(0) });
  const middle = await below(top, { budget_ceiling_usd: usd(1) });
  return [top, middle, await below(middle, { budget_ceiling_usd: usd(2) })] as const;
}
async function budgetOf({ run_id }: StoredRun) {
  return (await budgetsOf(db, `run:${run_id}`))[`run:${run_id}`];
}
async function stateOf({ run_id }: StoredRun) {
  return db('run').where({ run_id }).first('state', 'cancel_mode', 'cancel_delivered_at');
}
function end(run: StoredRun, state: 'succeeded' | 'cancelled' = 'succeeded') {
  return finishRun(db, { run_id: run.run_id, state, output: null, error: null, step_ids: [] });
}

it('a run shows, and is found by, what a run below it waits for', async () => {
  const [top, middle, low] = await aLine();
  const waiting = { step_id: 'a', item: 0, state: 'waiting' };
  await db('step').insert([
    { ...waiting, run_id: top.run_id, awaiting: 'run' },
    { ...waiting, run_id: middle.run_id, awaiting: 'run' },
    { ...waiting, run_id: low.run_id, awaiting: 'budget' },
  ]);
  const { project_id } = top;
  expect((await readRun(db, project_id, top.run_id))?.awaiting).toEqual(['budget', 'run']);
  const found = await listRuns(db, project_id, { awaiting: 'budget', limit: 10 });
  expect(new Set(found.map(({ run_id }) => run_id))).toEqual(
    new Set([top.run_id, middle.run_id, low.run_id]),
  );
});

describe('money of a run that another run has started', () => {
  it('is reserved, settled, given back and lost in every run above it', async () => {
    const [line, paid] = [await aLine([90, null, 40]), await aPaid()];
    const [top, middle, low] = line;
    const claims = ['a', 'b', 'c'].map((step_id) => aClaim(low, paid, { step_id, reserved_nano: 10n }));
    for (const claim of claims) expect((await claimAttempt(db, claim)).outcome).toBe('claimed');
    await claimAttempt(db, aClaim(middle, paid, { reserved_nano: 5n }));
    expect(await Promise.all(line.map(budgetOf))).toEqual([
      { limit: '90', reserved: '35', spent: '0' },
      { limit: null, reserved: '35', spent: '0' },
      { limit: '40', reserved: '30', spent: '0' },
    ]);
    const [first, second, third] = claims as [(typeof claims)[0], (typeof claims)[0], (typeof claims)[0]];
    await settleAttempt(db, anEnd(first, { settled_nano: 4n }));
    await settleAttempt(db, anEnd(second, { state: 'released', settled_nano: 0n }));
    await db('attempt')
      .where({ attempt_id: third.attempt_id })
      .update({ lease_until: new Date(0) });
    await loseExpiredAttempts(db);
    expect(
      (await Promise.all(line.map(budgetOf))).map((budget) => [budget?.reserved, budget?.spent]),
    ).toEqual([
      ['5', '14'],
      ['5', '14'],
      ['0', '14'],
    ]);
    await settleAttempt(db, anEnd(third, { settled_nano: 1n })); // the truth, late
    expect((await budgetOf(top))?.spent).toBe('5');
    expect(await findDrift(db)).toEqual([]);
    expect(await correctDrift(db)).toEqual([]);
  });

  it('is refused where one above has no room, and the refusal names that run', async () => {
    const [[top, middle, low], paid] = [await aLine([15, null, 100]), await aPaid()];
    const other = await below(top, { parent_item: 2 });
    expect((await claimAttempt(db, aClaim(other, paid, { reserved_nano: 10n }))).outcome).toBe('claimed');
    const claims = ['a', 'b'].map((step_id) => aClaim(low, paid, { step_id, reserved_nano: 6n }));
    for (const refused of await claimAttempts(db, claims)) {
      expect(refused).toMatchObject({
        outcome: 'over_budget',
        output: { scope: 'run', run_id: top.run_id, limit_nano: '15', reserved_nano: '10', resets_at: null },
      });
    }
    expect([await budgetOf(low), await budgetOf(middle)]).toMatchObject([
      { reserved: '0' },
      { reserved: '0' },
    ]);
    const marks = await db('event').where({ run_id: top.run_id, type: 'run.budget_reached' });
    expect(marks).toEqual([]); // it would fit once the running call has cost nothing
    await db.transaction((trx) => setRunLimit(trx, top.run_id, 16n));
    expect((await claimAttempts(db, claims.slice(0, 1)))[0]?.outcome).toBe('claimed');
  });

  it('is counted in what the runs above have cost and reserved, as one and in the list', async () => {
    const [line, paid] = [await aLine(), await aPaid()];
    for (const run of line) {
      const claim = aClaim(run, paid, { reserved_nano: 9n });
      await claimAttempt(db, claim);
      await settleAttempt(db, anEnd(claim, { settled_nano: 4n }));
      await claimAttempt(db, aClaim(run, paid, { step_id: 'b', reserved_nano: 1n }));
    }
    const { project_id } = line[0];
    const shown = await Promise.all(line.map(({ run_id }) => readRun(db, project_id, run_id)));
    const money = shown.map((run) => [run?.cost_nano, run?.reserved_nano]);
    expect(money).toEqual([
      ['12', '3'],
      ['8', '2'],
      ['4', '1'],
    ]);
    const listed = await listRuns(db, project_id, { limit: 10 });
    const costs = new Map(listed.map((run) => [run.run_id, [run.cost_nano, run.reserved_nano]]));
    expect(line.map(({ run_id }) => costs.get(run_id))).toEqual(money);
  });

  it('is limited for each call by the lowest ceiling above, and all below learn of another one', async () => {
    const [top, middle, low] = await aLine([15, null, 100]);
    const ceilings = async () =>
      Promise.all(
        [top, middle, low].map(async (run) => Number((await openRun(db, run.run_id))?.budget_ceiling_usd)),
      );
    expect(await ceilings()).toEqual([15e-9, 15e-9, 15e-9]);
    const done = await below(top, { parent_item: 3 });
    await end(done);
    const ceiling = { ceilingUsd: 200e-9, isRaise: false };
    expect(await db.transaction((trx) => setRunCeiling(trx, top, ceiling))).toMatchObject({ is_set: true });
    expect(await ceilings()).toEqual([200e-9, 200e-9, 100e-9]);
    const versions = await db('run')
      .whereIn(
        'run_id',
        [top, middle, low, done].map(({ run_id }) => run_id),
      )
      .orderBy('run_id')
      .select('control_version', 'budget_version');
    expect(versions.map((row) => [row.control_version, row.budget_version])).toEqual([
      [1, 1],
      [1, 1],
      [1, 1],
      [0, 0],
    ]);
  });
});

describe('a run or step that has ended', () => {
  const item = (run: StoredRun, n: number) => ({ run_id: run.run_id, step_id: 'a', item: n, revision: 0 });
  const claimItem = async (run: StoredRun, n: number) => {
    const claim = aClaim(run, await anInstance(db), { key: `${run.run_id}.a.${n}.0`, step: item(run, n) });
    return (await claimAttempt(db, claim)).outcome;
  };

  it('takes no claim for an item that had not begun', async () => {
    const run = await aRun(db);
    await recordDecisions(db, run.run_id, [{ step_id: 'a', state: 'running', items: 3 }]);
    expect(await claimItem(run, 1)).toBe('claimed');
    await finishRun(db, {
      run_id: run.run_id,
      state: 'cancelled',
      output: null,
      error: null,
      step_ids: ['a', 'b', 'c'],
    });
    expect(await claimItem(run, 2)).toBe('closed');
    const wait = { awaiting: 'budget', until: null, for_ms: null, begins: false } as const;
    expect(await keepWaiting(db, item(run, 3), wait)).toBeUndefined();
    expect(
      await db('step').where({ run_id: run.run_id, step_id: 'a' }).orderBy('item').pluck('item'),
    ).toEqual([0, 1]);
  });

  it('takes none for a step either whose run has ended without it, nor for items of an ended whole', async () => {
    const [gone, run] = [await aRun(db), await aRun(db)];
    await end(gone);
    expect((await claimAttempt(db, aClaim(gone, await anInstance(db)))).outcome).toBe('closed');
    await recordDecisions(db, run.run_id, [{ step_id: 'a', state: 'skipped' }]);
    expect(await claimItem(run, 1)).toBe('closed');
  });

  it('starts no run', async () => {
    const [run, other] = [await aRun(db), await aRun(db)];
    await end(run);
    const row = { job_id: other.job_id, digest: other.digest, pipeline: 'p', version: '1', labels: {} };
    const late = { ...row, run_id: `${other.run_id}_late`, parent_run_id: run.run_id, parent_step_id: 'a' };
    const more = { project_id: other.project_id, priority: 'standard', budget_ceiling_usd: null } as const;
    expect((await insertRuns(db, { runs: [{ ...late, ...more }] })).run_ids.size).toBe(0);
  });

  it('asks a run to cancel that was being started as it ended', async () => {
    const run = await aRun(db);
    const trx = await db.transaction();
    const child = await aRun(trx, {
      project_id: run.project_id,
      parent_run_id: run.run_id,
      parent_step_id: 'a',
      parent_item: 0,
    });
    const ending = end(run);
    await waitFor('the end to wait for the row', async () => {
      const { rows } = await db.raw(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return rows.length > 0;
    });
    await trx.commit();
    await ending;
    expect(await stateOf(child)).toMatchObject({ state: 'cancelling', cancel_mode: 'graceful' });
  });

  it('by force reaches the runs below that are cancelling gracefully', async () => {
    const run = await aRun(db);
    const child = await below(run);
    await requestCancel(db, child, { reason: null, mode: 'graceful' });
    await db('run').where({ run_id: child.run_id }).update({ cancel_delivered_at: new Date() });
    await end(await aRun(db)); // another's end does nothing
    await requestCancel(db, run, { reason: null, mode: 'terminate' });
    await end(run, 'cancelled');
    expect(await stateOf(child)).toEqual({
      state: 'cancelling',
      cancel_mode: 'terminate',
      cancel_delivered_at: null,
    });
  });
});
