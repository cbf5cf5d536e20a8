import { describe, expect, it } from 'vitest';
import { findEscalation, insertEscalation } from '../../../src/db/escalation/escalation.ts';
import { readReview } from '../../../src/db/review/review.ts';
import {
  keepStepOpen,
  keepWaiting,
  recordChanges,
  recordDecisions,
  type StepChange,
} from '../../../src/db/step/step-progress.ts';
import { newId } from '../../../src/parts/ids.ts';
import { openReview } from '../../../src/use-cases/reviews/opening.ts';
import { useDatabase } from '../../support/database.ts';
import {
  aClaim,
  anEnd,
  anInstance,
  aRun,
  claimAttempt,
  type StoredRun,
  settleAttempt,
} from '../../support/factories.ts';
import { untilLocked } from '../../support/locks.ts';

const { db } = useDatabase(4);

async function stepsOf({ run_id }: StoredRun): Promise<string[]> {
  const rows = await db('step')
    .where({ run_id })
    .orderBy(['step_id', 'item'])
    .select('step_id', 'item', 'state');
  return rows.map(({ step_id, item, state }) => `${step_id} ${item} ${state}`);
}
async function eventsOf({ run_id }: StoredRun) {
  return (await db('event').where({ run_id }).orderBy('id').select('type', 'step_id', 'item', 'data')).slice(
    1,
  );
}

const error = { code: 'items_failed', message: 'too many, with \u0000' };

describe('recordDecisions', () => {
  it('writes each once, in their order, and leaves steps that have a row', async () => {
    const run = await aRun(db);
    await db('step').insert({ run_id: run.run_id, step_id: 'b', state: 'succeeded', output: '1' });
    const decide = () =>
      recordDecisions(db, run.run_id, [
        { step_id: 'd', state: 'running', items: 0 },
        { step_id: 'a', state: 'failed', error },
        { step_id: 'b', state: 'skipped' },
        { step_id: 'c', state: 'skipped' },
      ]);
    await Promise.all([decide(), decide()]);
    expect(await stepsOf(run)).toEqual(['a 0 failed', 'b 0 succeeded', 'c 0 skipped', 'd 0 running']);
    expect(await eventsOf(run)).toEqual([
      { type: 'step.started', step_id: 'd', item: null, data: { items: 0 } },
      {
        type: 'step.failed',
        step_id: 'a',
        item: null,
        data: { error: { ...error, message: 'too many, with \ufffd' } },
      },
      { type: 'step.skipped', step_id: 'c', item: null, data: { reason: 'when' } },
    ]);
  });
});

describe('recordChanges', () => {
  it('writes ends in their order, once, and leaves steps that have ended', async () => {
    const [run, instance] = [await aRun(db), await anInstance(db)];
    const claim = aClaim(run, instance);
    await claimAttempt(db, claim);
    await settleAttempt(db, anEnd(claim));
    await recordDecisions(db, run.run_id, [{ step_id: 'fan', state: 'running', items: 2 }]);
    const changes: StepChange[] = [
      { step_id: 'c', item: 0, state: 'skipped' },
      { step_id: 'fan', item: 0, state: 'failed', error },
      { step_id: 'a', item: 0, state: 'cancelled' },
      { step_id: 'fan', item: 2, state: 'cancelled', error },
    ];
    const before = (await eventsOf(run)).length;
    for (const _ of [1, 2]) await recordChanges(db, run.run_id, changes);
    expect(await stepsOf(run)).toEqual(['a 0 succeeded', 'c 0 skipped', 'fan 0 failed', 'fan 2 cancelled']);
    expect((await eventsOf(run)).slice(before)).toMatchObject([
      { type: 'step.skipped', step_id: 'c', item: null, data: { reason: 'dependencies' } },
      { type: 'step.failed', step_id: 'fan', item: null, data: { error: { code: 'items_failed' } } },
      { type: 'step.cancelled', step_id: 'fan', item: 2, data: { error: { code: 'items_failed' } } },
    ]);
    expect(
      await db('step').where({ run_id: run.run_id, step_id: 'fan', item: 0 }).first('items', 'error'),
    ).toEqual({
      items: 2,
      error: { ...error, message: 'too many, with \ufffd' },
    });
  });

  it('sees what its step waits for also when that is being written', async () => {
    const run = await aRun(db);
    const { run_id, project_id } = run;
    const key = { run_id, step_id: 'sub', item: 0, revision: 0 };
    await keepStepOpen(db, key, { state: 'retrying', error, data: {} });
    const { run_id: sub_run_id } = await aRun(db, {
      project_id,
      parent_run_id: run_id,
      parent_step_id: 'sub',
    });
    const starting = await db.transaction();
    const wait = { awaiting: 'run', until: null, for_ms: null, begins: true, sub_run_id } as const;
    await keepWaiting(starting, key, wait);
    const giving = recordChanges(db, run_id, [{ step_id: 'sub', item: 0, state: 'cancelled' }]);
    await untilLocked(db);
    await starting.commit();
    await giving;
    expect(await db('run').where({ run_id: sub_run_id }).first('state')).toEqual({ state: 'cancelling' });
    // Without another one, the failure that it had stays.
    const row = await db('step').where({ run_id, step_id: 'sub' }).first('state', 'error');
    expect(row).toMatchObject({ state: 'cancelled', error: { code: 'items_failed' } });
  });

  it('ends the waits of the step: its question, its ladder, its child run; and none of another step', async () => {
    const run = await aRun(db);
    const { run_id, project_id } = run;
    const ask = (item: number) =>
      openReview(db, {
        project_id,
        kind: 'step',
        reason: 'r',
        due_in_ms: 60_000,
        payload: {},
        run_id,
        step_id: 'ask',
        item,
      });
    const reviews = [await ask(1), await ask(2)];
    const wait = { until: null, for_ms: null, begins: true } as const;
    for (const item of [1, 2]) {
      const key = { run_id, step_id: 'ask', item, revision: 0 };
      await keepWaiting(db, key, { ...wait, awaiting: 'review' });
    }
    const children = await Promise.all(
      [1, 2].map((item) =>
        aRun(db, { project_id, parent_run_id: run_id, parent_step_id: 'sub', parent_item: item }),
      ),
    );
    for (const [at, { run_id: sub_run_id }] of children.entries()) {
      const key = { run_id, step_id: 'sub', item: at + 1, revision: 0 };
      await keepWaiting(db, key, { ...wait, awaiting: 'run', sub_run_id });
    }
    const escalation_id = newId('escalation');
    await insertEscalation(db, {
      escalation_id,
      project_id,
      job_type: 'x',
      prompt: 'p',
      context: {},
      result_schema: null,
      max_usd: null,
      step: { run_id, step_id: 'climb', item: 0 },
      caller: null,
      repo_context: '',
      signals: [],
      previous_id: null,
      escalation_level: 0,
      escalation_history: [],
      escalation_advice: [],
      fingerprint: null,
      ladder: {},
      model_spec: { level: 0, label: 'static template', capability: null, model: null },
    });
    await keepStepOpen(
      db,
      { run_id, step_id: 'climb', item: 0 },
      { state: 'retrying', error: null, data: {} },
    );

    await recordChanges(
      db,
      run_id,
      ['ask', 'sub'].flatMap((step_id) => [{ step_id, item: 1, state: 'cancelled' as const }]),
    );
    const statesOf = async () => ({
      reviews: await Promise.all(
        reviews.map(async ({ review_id }) => (await readReview(db, review_id))?.state),
      ),
      runs: (await db('run').where({ parent_run_id: run_id }).orderBy('parent_item')).map(
        ({ state }) => state,
      ),
      ladder: (await findEscalation(db, project_id, escalation_id))?.state,
    });
    expect(await statesOf()).toEqual({
      reviews: ['cancelled', 'open'],
      runs: ['cancelling', 'queued'],
      ladder: 'running',
    });
    await recordChanges(db, run_id, [{ step_id: 'climb', item: 0, state: 'failed', error }]);
    expect((await statesOf()).ladder).toBe('cancelled');
  });
});
