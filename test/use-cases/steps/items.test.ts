import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import type { Json } from '@capstan/core/contracts/primitives';
import { mentionWhole } from '@capstan/core/expression/large-outputs';
import { describe, expect, it } from 'vitest';
import { listEvents } from '../../../src/db/run/event.ts';
import { listItemResults, listRunSteps, listStepItems } from '../../../src/db/step/step.ts';
import { recordChanges } from '../../../src/db/step/step-progress.ts';
import { createStepResults } from '../../../src/parts/definitions/step-results.ts';
import { toRunEvent } from '../../../src/parts/feeds/event-feed.ts';
import { toOpaqueKey } from '../../../src/use-cases/routing/call.ts';
import { aRun } from '../../support/factories.ts';
import { answer } from '../../support/fleet.ts';
import { stepsOf, useSteps } from '../../support/steps.ts';

const world = useSteps();
const { db } = world;

function fan(items: Json, more: Partial<StepDefinition> = {}): StepDefinition {
  return {
    id: 'fan',
    capability: 'paint',
    for_each: { items },
    input: { of: '{{ item }}', at: '{{ index }}' },
    ...more,
  };
}

function aFanRun(items: Json, job = {}, after: StepDefinition[] = []) {
  return aRun(db, { ...stepsOf([fan(items), ...after]), job, project_id: world.projectId() });
}

describe('a step with for_each', () => {
  it('is decided once, by its count, and executes each item with its own value and index', async () => {
    const paint = await world.register({ name: 'paint' });
    const run = await aFanRun('{{ job.colors }}', { colors: ['red', { deep: 'blue' }, null] });
    const worker = world.newWorker();
    for (const _ of [1, 2]) {
      expect(await worker.decide({ run_id: run.run_id, step_ids: ['fan'] })).toEqual([
        { type: 'go', items: 3 },
      ]);
    }
    for (const item of [3, 1]) {
      expect(await worker.execute(run, { step_id: 'fan', item })).toMatchObject({ kind: 'succeeded' });
    }
    expect(paint.execs.map(({ input }) => input)).toEqual([
      { of: null, at: 2 },
      { of: 'red', at: 0 },
    ]);
    expect(paint.execs.map(({ headers }) => headers['idempotency-key'])).toEqual([
      toOpaqueKey(`${run.run_id}.fan.3.0`),
      toOpaqueKey(`${run.run_id}.fan.1.0`),
    ]);
    expect(await world.eventsOf(run)).toEqual([
      ...['run.queued', 'run.started', 'step.started fan'],
      ...['step.started fan[3]', 'step.routed fan[3]', 'step.succeeded fan[3]'],
      ...['step.started fan[1]', 'step.routed fan[1]', 'step.succeeded fan[1]'],
    ]);
    // with any open transactions of other tests
    const before = '9223372036854775807';
    const page = await listEvents(db, run.run_id, { before, after: 0, limit: 4 });
    expect(page.slice(2).map(toRunEvent)).toMatchObject([
      { type: 'step.started', step_id: 'fan', data: { items: 3 } },
      { type: 'step.started', step_id: 'fan', item: 3 },
    ]);
    const [whole] = await listRunSteps(db, run.run_id);
    expect(whole).toMatchObject({ state: 'running', attempts: 2, item_states: { succeeded: 2, pending: 1 } });
    expect(await listStepItems(db, { ...run, step_id: 'fan' }, { limit: 9 })).toMatchObject([
      { item: 1, state: 'succeeded', attempts: 1 },
      { item: 3, state: 'succeeded', attempts: 1 },
    ]);
    expect(await listStepItems(db, { ...run, step_id: 'fan' }, { item: 3 })).toHaveLength(1);
  });

  it('of literal items evaluates the expressions in them', async () => {
    const run = await aFanRun([1, '{{ job.two }}'], { two: 2 });
    const worker = world.newWorker();
    expect(await worker.decide({ run_id: run.run_id, step_ids: ['fan'] })).toEqual([
      { type: 'go', items: 2 },
    ]);
    expect(await worker.execute(run, { step_id: 'fan', item: 2 })).toMatchObject({
      output: { of: 2, at: 1 },
    });
  });

  it('an item that the list does not have fails and is not sent', async () => {
    const run = await aFanRun([1]);
    const end = await world.newWorker().execute(run, { step_id: 'fan', item: 2 });
    expect(end).toMatchObject({ kind: 'failed', error: { message: 'step fan has no item 2' } });
  });

  it.each([
    [
      'a value that is no list',
      '{{ job.text }}',
      'expression_unresolved',
      'for_each.items: a list is needed, not a string',
    ],
    [
      'a value that is not there',
      '{{ job.none }}',
      'expression_unresolved',
      'for_each.items: job.none does not exist',
    ],
    ['too many items', '{{ job.many }}', 'too_many_items', 'for_each.items: 10001 items; at most 10000'],
  ])('fails with %s, once, without any item', async (_, items, code, seen) => {
    const job = { text: 'abc', many: Array(10_001).fill(0) };
    const run = await aFanRun(items, job);
    for (const worker of [world.newWorker(), world.newWorker()]) {
      expect(await worker.decide({ run_id: run.run_id, step_ids: ['fan'] })).toMatchObject([
        { type: 'fail', error: { code, message: expect.stringContaining(seen) } },
      ]);
    }
    expect(await listRunSteps(db, run.run_id)).toMatchObject([
      { step_id: 'fan', state: 'failed', error: { code } },
    ]);
    expect((await world.eventsOf(run)).filter((line) => line === 'step.failed fan')).toHaveLength(1);
  });

  it('keeps many workers from reading the list of many items for each of them', async () => {
    const run = await aFanRun('{{ steps.first.output.list }}', {}, [{ id: 'first', capability: 'paint' }]);
    const state = { state: 'succeeded', output: JSON.stringify({ list: ['x', 'y'] }) };
    await db('step').insert({ run_id: run.run_id, step_id: 'first', ...state });
    const worker = world.newWorker();
    const [reads, read] = [[] as string[], ({ sql }: { sql: string }) => void reads.push(sql)];
    db.on('query', read);
    await Promise.all([1, 2, 1, 2].map((item) => worker.execute(run, { step_id: 'fan', item })));
    db.off('query', read);
    expect(reads.filter((sql) => sql.includes('from step s where'))).toHaveLength(1);
  });
});

/** The whole of `fan` with three items, of which the second failed. */
async function aMixedFan(state = 'succeeded') {
  const run = await aFanRun([1, 2, 3], {}, [
    {
      id: 'next',
      capability: 'paint',
      input: { all: '{{ steps.fan.output }}', was: '{{ steps.fan.status }}' },
    },
    {
      id: 'looks',
      capability: 'paint',
      input: { was: '{{ steps.fan.status }}', cost: '{{ steps.fan.cost_usd }}' },
    },
  ]);
  const { run_id } = run;
  await db('step').insert([
    { run_id, step_id: 'fan', item: 0, state, items: 3 },
    { run_id, step_id: 'fan', item: 3, state: 'succeeded', output: '{"n": 3}' },
    { run_id, step_id: 'fan', item: 1, state: 'succeeded', output: '"one"' },
    { run_id, step_id: 'fan', item: 2, state: 'failed', error: { code: 'input_rejected', message: 'no' } },
  ]);
  return run;
}

describe('a list of outputs that is too large as a whole', () => {
  /** `fan` with twenty items of 1 MB has ended. */
  async function aLargeFan(after: StepDefinition[]) {
    const run = await aFanRun([1], {}, after);
    await db('step').insert({ run_id: run.run_id, step_id: 'fan', item: 0, state: 'succeeded', items: 20 });
    await db.raw(
      `insert into step (run_id, step_id, item, state, output)
       select ?, 'fan', i, 'succeeded', json_build_object('name', 'n' || i, 'blob', repeat('x', 1000000))
       from generate_series(1, 20) i`,
      [run.run_id],
    );
    return run;
  }

  it('is the list of a for_each, each item with its own value', async () => {
    await world.register({ name: 'paint' });
    const run = await aLargeFan([
      {
        id: 'next',
        capability: 'paint',
        for_each: { items: '{{ steps.fan.output }}' },
        input: { of: '{{ item.name }}', at: '{{ index }}' },
      },
    ]);
    const worker = world.newWorker();
    expect(await worker.decide({ run_id: run.run_id, step_ids: ['next'] })).toEqual([
      { type: 'go', items: 20 },
    ]);
    expect(await worker.execute(run, { step_id: 'next', item: 7 })).toMatchObject({
      output: { of: 'n7', at: 6 },
    });
    expect(await worker.execute(run, { step_id: 'next', item: 21 })).toMatchObject({
      error: { message: 'step next has no item 21' },
    });
  });

  it('gives conditions its length, and inputs its members', async () => {
    await world.register({ name: 'paint' });
    const input = {
      n: '{{ steps.fan.output | length }}',
      all: '{{ steps.fan.output[*].name | slice(0, 2) }}',
    };
    const run = await aLargeFan([
      { id: 'small', capability: 'paint', when: '(steps.fan.output | length) < 20' },
      { id: 'next', capability: 'paint', input },
      { id: 'whole', capability: 'paint', input: { all: '{{ steps.fan.output | reverse | first }}' } },
    ]);
    const worker = world.newWorker();
    const [decided] = await worker.decide({ run_id: run.run_id, step_ids: ['small'] });
    expect(decided).toEqual({ type: 'skip' });
    expect(await worker.execute(run, 'next')).toMatchObject({ output: { n: 20, all: ['n1', 'n2'] } });
    expect(await worker.execute(run, 'whole')).toMatchObject({
      error: {
        code: 'output_too_large',
        message: expect.stringMatching(/step fan take 200\d+ bytes; at most 16777216/),
      },
    });
  });
});

describe('the output of a step with for_each', () => {
  it('is the list of its items in their order, null where one has failed', async () => {
    const run = await aMixedFan();
    expect(await world.newWorker().execute(run, 'next')).toMatchObject({
      output: { all: ['one', null, { n: 3 }], was: 'succeeded' },
    });
  });

  it('is not remembered before the step has ended', async () => {
    const run = await aMixedFan('running');
    const results = createStepResults(db);
    const read = async () => {
      const { steps } = await results.scopeOf(run.run_id, mentionWhole(['fan']));
      return steps.fan?.output;
    };
    expect(await read()).toEqual(['one', null, { n: 3 }]);
    await db('step').where({ run_id: run.run_id, item: 2 }).update({ state: 'succeeded', output: '2' });
    expect(await read()).toEqual(['one', 2, { n: 3 }]);
    await recordChanges(db, run.run_id, [{ step_id: 'fan', item: 0, state: 'succeeded' }]);
    await read();
    await db('step').where({ run_id: run.run_id }).where('item', '>', 0).delete();
    expect(await read()).toEqual(['one', 2, { n: 3 }]);
  });

  it('is none when the step has failed', async () => {
    const run = await aMixedFan('failed');
    expect(await world.newWorker().execute(run, 'next')).toMatchObject({
      kind: 'failed',
      error: { code: 'expression_unresolved', message: expect.stringContaining('steps.fan.output') },
    });
  });

  it('fails every step that reads it when all items together are too large, and no other', async () => {
    const run = await aMixedFan();
    const large = JSON.stringify('x'.repeat(9 * 1_048_576));
    await db('step')
      .where({ run_id: run.run_id, state: 'succeeded' })
      .where('item', '>', 0)
      .update({ output: large });
    const worker = world.newWorker();
    expect(await worker.execute(run, 'next')).toMatchObject({
      kind: 'failed',
      error: { code: 'output_too_large', message: expect.stringContaining('at most 16777216') },
    });
    expect(await worker.execute(run, 'looks')).toMatchObject({ output: { was: 'succeeded', cost: 0 } });
  });
});

it('a step costs what its items cost', async () => {
  const sell = await world.register({ name: 'sell', cost_model: { type: 'per_call', rate_usd: 0.25 } });
  const run = await aRun(db, {
    ...stepsOf([
      fan([1, 2], { capability: 'sell' }),
      { id: 'sum', capability: 'paint', input: { usd: '{{ steps.fan.cost_usd }}' } },
    ]),
    project_id: world.projectId(),
  });
  const worker = world.newWorker();
  await worker.decide({ run_id: run.run_id, step_ids: ['fan'] });
  await worker.execute(run, { step_id: 'fan', item: 1 });
  sell.handle = (_exec, response) => answer(response, 422, { ok: false, error: 'no' });
  expect(await worker.execute(run, { step_id: 'fan', item: 2 })).toMatchObject({ kind: 'failed' });
  await recordChanges(db, run.run_id, [{ step_id: 'fan', item: 0, state: 'succeeded' }]);
  expect(await worker.execute(run, 'sum')).toMatchObject({ output: { usd: 0.25 } });
  expect(await listItemResults(db, run.run_id, ['fan'])).toMatchObject([
    { item: 1, output: { of: 1, at: 0 } },
    { item: 2, output: null },
  ]);
});
