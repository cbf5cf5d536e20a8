import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import { describe, expect, it } from 'vitest';
import { setScopedBudget } from '../../../src/db/money/scoped-budget.ts';
import { listRunSteps } from '../../../src/db/step/step.ts';
import { createRunContexts } from '../../../src/parts/definitions/run-context.ts';
import { raiseRun } from '../../../src/use-cases/money/budgets.ts';
import { setScopedLimit } from '../../../src/use-cases/money/scoped-budgets.ts';
import { stepOf } from '../../../src/use-cases/run-data/evaluation.ts';
import { toRunStep } from '../../../src/use-cases/runs/run-view.ts';
import { waitForCall } from '../../../src/use-cases/steps/waits.ts';
import { aProject, aRun, type RunOverrides } from '../../support/factories.ts';
import { echo } from '../../support/fleet.ts';
import { untilLocked } from '../../support/locks.ts';
import { stepsOf, useSteps } from '../../support/steps.ts';
import { waitFor } from '../../support/wait.ts';

const world = useSteps();
const { db } = world;

function rowOf(runId: string, step_id = 'a') {
  return db('step')
    .where({ run_id: runId, step_id })
    .first(
      'state',
      'awaiting',
      'wait_since',
      'wait_until',
      'budget_scope',
      'wake_requested_at',
      'started_at',
    );
}

async function waitsOf(run: { run_id: string }) {
  return (
    await db('event')
      .where({ ...run, type: 'step.waiting' })
      .orderBy('id')
      .select('data', 'item')
  ).map(({ data, item }) => (item === null ? data : { ...data, item }));
}

function aRunOf(step: Partial<StepDefinition>, run: RunOverrides = {}) {
  return aRun(db, { ...stepsOf([{ id: 'a', capability: 'paid', ...step }]), ...run });
}

function setLimit(scope: string, usd: number) {
  return db('budget')
    .where({ scope })
    .update({ limit_nano: usd * 1e9 });
}

describe('a step without money', () => {
  /** One call costs 2 USD; the run may spend 3 and has spent 2. */
  const aPoorRun = async (step: Partial<StepDefinition> = {}) => {
    if (!(await db('instance').where({ name: 'paid' }).first())) {
      await world.register({ name: 'paid', cost_model: { type: 'per_call', rate_usd: 2 } });
    }
    const run = await aRun(db, {
      ...stepsOf([
        { id: 'a', capability: 'paid', ...step },
        { id: 'b', capability: 'paid' },
      ]),
      budget_ceiling_usd: 3,
      project_id: world.projectId(),
    });
    expect(await world.newWorker().execute(run, 'b')).toMatchObject({ kind: 'succeeded' });
    return { ...run, scope: `run:${run.run_id}` };
  };

  it('of its run waits without an end, asks one person once, and succeeds after a raise', async () => {
    const run = await aPoorRun({ optional: true });
    const worker = world.newWorker();
    const first = await worker.execute(run, 'a');
    expect(first).toEqual({
      kind: 'waiting',
      awaiting: 'budget',
      until: null,
      ref: { review_id: expect.stringMatching(/^rev_/) },
    });
    expect(await worker.execute(run, { step_id: 'a', resumed: true })).toEqual(first);
    const { run_id } = run;
    const [review] = await db('review').where({ subject: run.scope });
    expect(review).toMatchObject({
      kind: 'budget',
      state: 'open',
      run_id,
      step_id: null,
      project_id: run.project_id,
      reason: `the budget of the run is used up: limit 3 USD, spent 2, reserved 0; step a needs 2`,
      payload: {
        optional: true,
        details: {
          scope: 'run',
          limit_usd: 3,
          spent_usd: 2,
          reserved_usd: 0,
          minimum_usd: 2,
          resets_at: null,
        },
      },
    });
    expect(review.due_at.getTime() - Date.now()).toBeGreaterThan(29 * 86_400_000);
    const { review_id } = review;
    expect(await waitsOf({ run_id })).toEqual([
      { awaiting: 'budget', until: null, review_id, scope: run.scope },
    ]);
    expect(await listRunSteps(db, run_id)).toContainEqual(
      expect.objectContaining({
        step_id: 'a',
        state: 'waiting',
        awaiting: 'budget',
        review_id,
        started_at: null,
      }),
    );

    await db('run').where({ run_id }).update({ budget_ceiling_usd: 4, budget_version: 7 });
    await setLimit(run.scope, 4);
    const end = await worker.execute(run, { step_id: 'a', resumed: true, budget_version: 7 });
    expect(end).toMatchObject({ kind: 'succeeded' });
    expect(await rowOf(run_id)).toMatchObject({ state: 'succeeded', awaiting: null, budget_scope: null });
    expect((await world.eventsOf(run)).filter((line) => line.endsWith(' a'))).toEqual([
      ...['step.waiting a', 'step.started a', 'step.routed a', 'step.succeeded a'],
    ]);
  });

  it.each([
    ['a price per call', { type: 'per_call', rate_usd: 0.1 }, 0.1],
    // 30 s are expected of a capability that was never called.
    ['a price per second', { type: 'per_second', rate_usd: 0.01 }, 0.3],
  ] as const)(
    'waits too where one call costs more than the whole budget of its run: %s',
    async (_, cost_model, usd) => {
      const name = `dear-${cost_model.type}`;
      await world.register({ name, cost_model });
      const run = await aRun(db, {
        ...stepsOf([{ id: 'a', capability: name }]),
        budget_ceiling_usd: 0.05,
        project_id: world.projectId(),
      });
      const { run_id } = run;
      const worker = world.newWorker();
      expect(await worker.execute(run, 'a')).toMatchObject({ kind: 'waiting', awaiting: 'budget' });
      const [review] = await db('review').where({ subject: `run:${run_id}` });
      expect(review.payload.details).toMatchObject({ scope: 'run', limit_usd: 0.05, minimum_usd: usd });
      await raiseRun(db, { project_id: run.project_id, run_id }, { ceilingUsd: usd, by: 'key_1' });
      const { budget_version } = await db('run').where({ run_id }).first('budget_version');
      const end = await worker.execute(run, { step_id: 'a', resumed: true, budget_version });
      expect(end).toMatchObject({ kind: 'succeeded' });
    },
  );

  it('of a run above waits for that run, asks about it, and succeeds after its raise', async () => {
    const top = await aPoorRun();
    const { project_id, scope } = top;
    const parent = { parent_run_id: top.run_id, parent_step_id: 'c', parent_item: 0 };
    const sub = await aRunOf({}, { project_id, ...parent });
    const worker = world.newWorker();
    const first = await worker.execute(sub, 'a');
    expect(first).toMatchObject({ kind: 'waiting', awaiting: 'budget', until: null });
    expect(await rowOf(sub.run_id)).toMatchObject({ state: 'waiting', budget_scope: scope });
    const [review] = await db('review').where({ subject: scope });
    expect(review).toMatchObject({ state: 'open', run_id: top.run_id });
    expect(review.payload.details).toMatchObject({
      run_id: sub.run_id,
      step_id: 'a',
      limit_usd: 3,
      spent_usd: 2,
    });
    expect(first).toMatchObject({ ref: { review_id: review.review_id } });

    await raiseRun(db, { project_id, run_id: top.run_id }, { ceilingUsd: 4, by: 'key_1' });
    expect(await db('review').where({ subject: scope }).pluck('state')).toEqual(['resolved']);
    expect((await rowOf(sub.run_id))?.wake_requested_at).not.toBeNull();
    const { budget_version } = await db('run').where({ run_id: sub.run_id }).first('budget_version');
    const end = await worker.execute(sub, { step_id: 'a', resumed: true, budget_version });
    expect(end).toMatchObject({ kind: 'succeeded' });
  });

  it('that a person has skipped meanwhile is skipped, and one that was cancelled is cancelled', async () => {
    for (const state of ['skipped', 'cancelled']) {
      const run = await aPoorRun();
      const worker = world.newWorker();
      await worker.execute(run, 'a');
      await db('step').where({ run_id: run.run_id, step_id: 'a' }).update({ state });
      expect(await worker.execute(run, { step_id: 'a', resumed: true })).toEqual({ kind: state });
    }
  });

  it('keeps a wake that was asked for while it was refused again', async () => {
    const run = await aPoorRun();
    const worker = world.newWorker();
    await worker.execute(run, 'a');
    await db('step').where({ run_id: run.run_id, step_id: 'a' }).update({ wake_requested_at: db.fn.now() });
    await worker.execute(run, { step_id: 'a', resumed: true });
    expect((await rowOf(run.run_id))?.wake_requested_at).not.toBeNull();
  });

  it('comes again at once when the limit was raised while it was refused, and opens no review', async () => {
    const run = await aPoorRun();
    const { scope, run_id } = run;
    const context = await createRunContexts(db).open(run_id);
    const key = { run_id, step_id: 'a', item: 0, revision: 0 };
    const details = {
      scope: 'run',
      limit_usd: 3,
      spent_usd: 2,
      reserved_usd: 0,
      minimum_usd: 2,
      resets_at: null,
    };
    const error = { code: 'budget_exhausted', message: 'no room', details };
    const raising = await db.transaction();
    await raising('budget').where({ scope }).update({ limit_nano: 4e9 });
    const work = { context, step: stepOf(context, 'a'), key };
    const stop = { error, delayMs: 0, isFull: false, needsTimer: false, leftMs: 0, round: 1 };
    const waiting = waitForCall({ db, fleet: world.fleet() }, work, stop);
    await untilLocked(db, 'for share');
    await raising.commit();
    expect(await waiting).toEqual({ kind: 'retry', error, delayMs: 500 });
    expect(await db('review').where({ subject: scope })).toEqual([]);
    expect(await rowOf(run_id)).toBeUndefined();
  });

  it('of a label waits for the next month, the run names the budget, and a raise of it lets it continue', async () => {
    if (!(await db('instance').where({ name: 'paid' }).first())) {
      await world.register({ name: 'paid', cost_model: { type: 'per_call', rate_usd: 2 } });
    }
    const { project_id } = await aProject(db);
    const team = { scope: 'label:team=ads', period: 'month', soft: 0.8 } as const;
    await setScopedBudget(db, project_id, { ...team, limitNano: 1_000_000_000n });
    const run = await aRunOf({}, { project_id, labels: { team: 'ads' } });
    const worker = world.newWorker();
    const end = await worker.execute(run, 'a');
    expect(end).toMatchObject({ kind: 'waiting', awaiting: 'budget', until: expect.any(Date) });
    const subject = `budget:${project_id}:month:label:team=ads`;
    expect((await rowOf(run.run_id))?.budget_scope).toBe(subject);
    const [row] = await listRunSteps(db, run.run_id);
    expect(toRunStep({ id: 'a', capability: 'paid' }, row, {})).toMatchObject({
      awaiting: 'budget',
      budget: 'label:team=ads by month',
    });
    const [review] = await db('review').where({ subject });
    expect(review).toMatchObject({
      state: 'open',
      reason: expect.stringContaining('the budget of label:team=ads by month is used up: limit 1 USD'),
      payload: { details: { scope: 'label', budget: 'label:team=ads', period: 'month' } },
    });
    const order = { project_id, scope: team.scope, by: 'key_1' };
    await db.transaction((trx) => setScopedLimit(trx, order, { period: 'month', limit_usd: 2, soft: 0.8 }));
    expect(await db('review').where({ subject }).pluck('state')).toEqual(['resolved']);
    expect((await rowOf(run.run_id))?.wake_requested_at).not.toBeNull();
    expect(await worker.execute(run, { step_id: 'a', resumed: true })).toMatchObject({ kind: 'succeeded' });
  });

  it.each(['project', 'global'] as const)('of the day of the %s waits for the next day', async (scope) => {
    const { project_id } = await aProject(
      db,
      scope === 'project' ? { daily_limit_nano: 1_000_000_000n } : {},
    );
    const subject = scope === 'project' ? `project:${project_id}` : 'global';
    if (scope === 'global') {
      await db('budget').where({ scope }).update({ limit_nano: 1e9 });
    }
    const [run, other] = [await aRunOf({}, { project_id }), await aRunOf({}, { project_id })];
    const end = await world.newWorker().execute(run, 'a');
    expect(end).toMatchObject({ kind: 'waiting', awaiting: 'budget', until: expect.any(Date) });
    const second = await world.newWorker().execute(other, 'a');
    expect(second).toMatchObject({ ref: 'ref' in end ? end.ref : null });
    const [review] = await db('review').where({ subject, project_id });
    expect(review).toMatchObject({ run_id: null, reason: expect.stringContaining('it resets at') });
    const shows = scope === 'project'; // what others spend is not the project's to know
    expect(/limit|spent|reserved/.test(review.reason)).toBe(shows);
    expect('limit_usd' in review.payload.details || 'spent_usd' in review.payload.details).toBe(shows);
    const row = await rowOf(run.run_id);
    expect(row?.wait_until).toEqual('until' in end ? end.until : null);
    expect(Math.abs(review.due_at - row?.wait_until)).toBeLessThan(61_000);
    expect(row?.wait_until.getTime()).toBeGreaterThan(Date.now());
    if (scope === 'global') await db('budget').where({ scope }).update({ limit_nano: null });
  });
});

/** Each has a capability of its own, and waits for seconds: so they wait together. */
describe.concurrent('a step whose capability is not offered', () => {
  it('fails at once when its author allows no time, with that reason', async () => {
    const run = await aRunOf({ capability: 'nowhere' });
    const error = {
      code: 'no_instance',
      message: 'no instance of nowhere is registered; wait_for_capability is 0s',
    };
    expect(await world.newWorker().execute(run, 'a')).toEqual({ kind: 'failed', error });
    expect(await world.eventsOf(run)).toEqual(['run.queued', 'run.started', 'step.failed a']);
  });

  it('waits as long as its author allows, counted from the first time, then fails', async () => {
    const run = await aRunOf({ capability: 'later', wait_for_capability: '1h' });
    const worker = world.newWorker();
    const first = await worker.execute(run, 'a');
    expect(first).toMatchObject({
      kind: 'waiting',
      awaiting: 'capability',
      until: expect.any(Date),
      ref: null,
    });
    const { wait_since, wait_until } = (await rowOf(run.run_id)) ?? {};
    expect(wait_until - wait_since).toBe(3_600_000);
    expect(await worker.execute(run, { step_id: 'a', resumed: true })).toEqual(first);
    expect(await waitsOf({ run_id: run.run_id })).toHaveLength(1);
    await db('step')
      .where({ run_id: run.run_id })
      .update({ wait_until: db.raw('now()') });
    expect(await worker.execute(run, { step_id: 'a', resumed: true })).toMatchObject({
      kind: 'failed',
      error: { code: 'no_instance', message: expect.stringContaining('wait_for_capability is 1h') },
    });
    expect(await rowOf(run.run_id)).toMatchObject({ state: 'failed', awaiting: null, wait_until: null });
  });

  it('continues when an instance has appeared', async () => {
    const run = await aRunOf({ capability: 'soon', wait_for_capability: '1h' });
    const worker = world.newWorker();
    expect(await worker.execute(run, 'a')).toMatchObject({ kind: 'waiting' });
    await world.register({ name: 'soon' });
    expect(await worker.execute(run, { step_id: 'a', resumed: true })).toMatchObject({ kind: 'succeeded' });
    expect(await rowOf(run.run_id)).toMatchObject({ awaiting: null, started_at: expect.any(Date) });
  });

  it.each(['0s', '1h'])('neither waits nor fails while a call is on its way (%s)', async (allowed) => {
    const name = `fickle-${allowed}`;
    const instance = await world.register({ name });
    const run = await aRunOf({ capability: name, wait_for_capability: allowed });
    let give = (): void => undefined;
    instance.handle = (exec, response) => {
      give = () => echo(exec, response);
    };
    const called = instance.execs.length;
    const first = world.newWorker().execute(run, 'a');
    await waitFor('the call', () => instance.execs.length > called);
    await db('instance').where({ name }).update({ state: 'deregistered' });
    await waitFor('the router to know', () => !world.statesOf(name).includes('up'));
    const second = await world.newWorker().execute(run, 'a');
    expect(second).toMatchObject({ kind: 'retry', error: { code: 'no_instance' } });
    void give();
    expect(await first).toMatchObject({ kind: 'succeeded' });
    expect(await world.newWorker().execute(run, { step_id: 'a', resumed: true })).toMatchObject({
      kind: 'succeeded',
    });
  });

  it('whose wait ends by the workflow’s clock before it does by the database’s comes again when it is over', async () => {
    const run = await aRunOf({ capability: 'tardy', wait_for_capability: '1h' });
    const worker = world.newWorker();
    await worker.execute(run, 'a');
    await db('step')
      .where({ run_id: run.run_id })
      .update({ wait_until: db.raw(`clock_timestamp() + interval '8 s'`) });
    const resumed = { step_id: 'a', resumed: true };
    const end = await worker.execute(run, resumed);
    expect(end).toEqual({
      kind: 'retry',
      delayMs: expect.any(Number),
      error: { code: 'unavailable', message: expect.stringMatching(/^the wait ends in \d+ ms$/) },
    });
    expect('delayMs' in end && end.delayMs > 4_000 && end.delayMs <= 8_000).toBe(true);
    // With no time to come again, or not resumed, it waits.
    expect(await worker.execute(run, { ...resumed, remainingMs: 3_000 })).toMatchObject({ kind: 'waiting' });
    expect(await worker.execute(run, 'a')).toMatchObject({ kind: 'waiting' });
  });

  it('comes back, and neither waits nor fails, while one is registered that is down', async () => {
    await world.register({ name: 'asleep' });
    // Again as long as it takes: the answer to its registration may make it healthy once more.
    await waitFor('the router to know', async () => {
      const changed = { state: 'down', down_since: db.fn.now() };
      await db('instance').where({ name: 'asleep' }).whereNot({ state: 'down' }).update(changed);
      return world.statesOf('asleep')[0] === 'down';
    });
    const run = await aRunOf({ capability: 'asleep', wait_for_capability: '1h' });
    const end = await world.newWorker().execute(run, 'a');
    expect(end).toMatchObject({ kind: 'retry', error: { code: 'no_instance' } });
    expect(await rowOf(run.run_id)).toMatchObject({ state: 'retrying' });
  });
});

describe('a step that only waits', () => {
  it('ends by the clock of the database, and has no output', async () => {
    const run = await aRunOf({ capability: undefined, wait: '1h' });
    const worker = world.newWorker();
    const first = await worker.execute(run, 'a');
    expect(first).toMatchObject({ kind: 'waiting', awaiting: 'time', ref: null });
    const row = await rowOf(run.run_id);
    expect(row?.wait_until - row?.wait_since).toBe(3_600_000);
    expect(await world.newWorker().execute(run, 'a')).toEqual(first);
    expect(await worker.execute(run, { step_id: 'a', resumed: true })).toEqual(first);

    const leaves = (ms: number) =>
      db('step')
        .where({ run_id: run.run_id })
        .update({ wait_until: db.raw(`clock_timestamp() + ? * interval '1 ms'`, [ms]) });
    await leaves(8_000);
    const early = await worker.execute(run, { step_id: 'a', resumed: true });
    expect(early).toMatchObject({ kind: 'retry', delayMs: expect.any(Number) });
    expect('delayMs' in early && early.delayMs > 4_000 && early.delayMs <= 8_000).toBe(true);
    await leaves(-1);
    for (const _ of [1, 2]) {
      const end = { kind: 'succeeded', output: null, attempt: null };
      expect(await worker.execute(run, { step_id: 'a', resumed: true })).toEqual(end);
    }
    expect(await world.eventsOf(run)).toEqual([
      ...['run.queued', 'run.started', 'step.started a', 'step.waiting a', 'step.succeeded a'],
    ]);
  });

  it('waits once per item', async () => {
    const run = await aRunOf({ capability: undefined, wait: '1h', for_each: { items: [1, 2] } });
    const worker = world.newWorker();
    for (const item of [1, 2]) await worker.execute(run, { step_id: 'a', item });
    expect(await waitsOf({ run_id: run.run_id })).toMatchObject([
      { awaiting: 'time', item: 1 },
      { awaiting: 'time', item: 2 },
    ]);
  });
});
