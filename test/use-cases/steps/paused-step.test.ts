/** M9 at the height of a step: in a pause no attempt begins, and no time of the step passes. */

import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import { describe, expect, test } from 'vitest';
import { pauseRun, readPause, resumeRun } from '../../../src/db/run/run-control.ts';
import { aRun, type StoredRun } from '../../support/factories.ts';
import { answer, type Handler } from '../../support/fleet.ts';
import { useSteps } from '../../support/steps.ts';
import { waitFor } from '../../support/wait.ts';

const { db, newWorker, register } = useSteps();

const fails: Handler = (_, response) => answer(response, 500, { ok: false, error: 'broken' });
const refuses: Handler = (_, response) => {
  response.setHeader('retry-after', '30');
  answer(response, 429, { ok: false, error: 'later' });
};

function runOf(capability: string, step: Partial<StepDefinition> = {}): Promise<StoredRun> {
  const retry = { max: 3, initial: '20ms' };
  return aRun(db, { definition: { steps: [{ id: 'a', capability, input: {}, retry, ...step }] } });
}

const holdRun = (run: StoredRun) => pauseRun(db, run);
const resume = (run: StoredRun) => resumeRun(db, run);

/** As if the pause had begun earlier. */
async function lengthenPause({ run_id }: StoredRun, ms: number): Promise<void> {
  await db.raw(`update run set paused_at = paused_at - ? * interval '1 millisecond' where run_id = ?`, [
    ms,
    run_id,
  ]);
}

const held = { kind: 'waiting', awaiting: 'retry', ref: null };

describe('a retry', () => {
  test.each([
    ['a failed call', fails],
    ['an overloaded instance, within its Retry-After', refuses],
  ])('is not made in a pause, after %s; after the resume it is', async (_, handle) => {
    const capability = `held-${handle.name}`;
    const instance = await register({ name: capability });
    instance.handle = handle;
    const run = await runOf(capability);
    const { execute } = newWorker();
    expect(await execute(run, { step_id: 'a', remainingMs: 90_000 })).toMatchObject({ kind: 'retry' });
    await holdRun(run);
    for (const round of [2, 3]) {
      expect(await execute(run, { step_id: 'a', round, remainingMs: 9_000 })).toMatchObject(held);
    }
    expect(instance.execs).toHaveLength(1);
    await resume(run);
    instance.handle = (exec, response) => answer(response, 200, { ok: true, output: exec.input });
    expect(await execute(run, { step_id: 'a', resumed: true })).toMatchObject({ kind: 'succeeded' });
    expect(instance.execs).toHaveLength(2);
  });

  test('that falls due during the call of a paused run waits for its own time', async () => {
    const instance = await register({ name: 'in-call' });
    const run = await runOf('in-call', { retry: { max: 3, initial: '40s' } });
    instance.handle = async (exec, response) => {
      await holdRun(run);
      await fails(exec, response);
    };
    const askedAt = Date.now();
    const end = await newWorker().execute(run, { step_id: 'a', remainingMs: 100_000 });
    expect(end).toMatchObject(held);
    const { until, leftMs } = end as { until: Date; leftMs: number };
    expect(until.getTime()).toBeGreaterThanOrEqual(askedAt + 30_000);
    expect(leftMs).toBeGreaterThan(60_000);
    expect(leftMs).toBeLessThanOrEqual(100_000);
  });

  test('goes to no other instance in a pause; after it, to the other one', async () => {
    const [first, second] = [
      await register({ name: 'pair' }),
      await register({ name: 'pair', tags: ['far'] }),
    ];
    const run = await runOf('pair');
    for (const one of [first, second]) {
      one.handle = async (exec, response) => {
        await holdRun(run);
        await fails(exec, response);
      };
    }
    const { execute } = newWorker();
    const end = await execute(run, { step_id: 'a', remainingMs: 9_000 });
    expect(end).toMatchObject(held);
    expect(first.execs.length + second.execs.length).toBe(1);
    await resume(run);
    for (const one of [first, second])
      one.handle = (_, response) => answer(response, 200, { ok: true, output: {} });
    expect(await execute(run, { step_id: 'a', resumed: true })).toMatchObject({ kind: 'succeeded' });
    expect([first.execs.length, second.execs.length]).toEqual([1, 1]);
  });

  test('that was the last one fails the step anyway: no other follows', async () => {
    const instance = await register({ name: 'last' });
    const run = await runOf('last', { retry: { max: 0 } });
    instance.handle = async (exec, response) => {
      await holdRun(run);
      await fails(exec, response);
    };
    expect(await newWorker().execute(run, 'a')).toMatchObject({ kind: 'failed' });
  });
});

test('a call that waits for a slot does not take it in a pause', async () => {
  const instance = await register({ name: 'full', max_concurrency: 1 });
  let free: () => void = () => undefined;
  instance.handle = (exec, response) => {
    free = () => answer(response, 200, { ok: true, output: exec.input });
  };
  const [other, run] = [await runOf('full'), await runOf('full')];
  const { execute, ctx } = newWorker();
  const first = execute(other, 'a');
  await waitFor('the slot to be taken', () => instance.execs.length === 1);
  let isInLine = false; // after some seconds in its process
  const second = execute(run, { step_id: 'a', remainingMs: 9_000 }).finally(() => {
    isInLine = true;
  });
  await waitFor('the second call to wait', () => isInLine || ctx.waitQueue.count('full') === 1);
  await holdRun(run);
  free();
  expect(await first).toMatchObject({ kind: 'succeeded' });
  expect(await second).toMatchObject({ kind: 'waiting' });
  expect(instance.execs).toHaveLength(1);
});

describe('a first attempt', () => {
  test('that waited long in the queue, or that a batch left to it, is not made in a pause', async () => {
    const instance = await register({ name: 'queued' });
    const run = await runOf('queued');
    await holdRun(run);
    const { execute } = newWorker();
    expect(await execute(run, { step_id: 'a', askedAtMs: Date.now() - 5_000 })).toMatchObject(held);
    expect(await execute(run, { step_id: 'a', again: true })).toMatchObject(held);
    expect(instance.execs).toEqual([]);
  });

  test('that is made at once asks nothing about pauses', async () => {
    await register({ name: 'hot' });
    const run = await runOf('hot');
    const asked: string[] = [];
    const note = ({ sql }: { sql: string }): void => void asked.push(sql);
    db.client.on('query', note);
    const end = await newWorker().execute(run, { step_id: 'a', askedAtMs: Date.now() });
    db.client.off('query', note);
    expect(end).toMatchObject({ kind: 'succeeded' });
    expect(asked.filter((sql) => sql.includes('paused_ms'))).toEqual([]);
  });
});

describe('the time of a step', () => {
  test('stops from the pause on: after the resume the step has its remaining time', async () => {
    const run = await runOf('none-left');
    await holdRun(run);
    await lengthenPause(run, 7_000);
    const askedAtMs = Date.now() - 8_000;
    const end = await newWorker().execute(run, { step_id: 'a', round: 2, remainingMs: 2_000, askedAtMs });
    expect(end).toMatchObject(held);
    const { leftMs } = end as { leftMs: number };
    expect(leftMs).toBeGreaterThanOrEqual(9_000);
    expect(leftMs).toBeLessThanOrEqual(2_000 + (Date.now() - askedAtMs));
  });

  test('also where the pause was shorter than its back-off; earlier pauses do not count', async () => {
    const run = await runOf('none-short');
    await holdRun(run);
    await lengthenPause(run, 60_000);
    await resume(run);
    const { paused_ms: before } = await readPause(db, run.run_id);
    await holdRun(run);
    await lengthenPause(run, 3_000);
    await resume(run);
    const { is_paused, paused_ms } = await readPause(db, run.run_id);
    expect(is_paused).toBe(false);
    expect(before).toBeGreaterThanOrEqual(60_000);
    expect(paused_ms - before).toBeGreaterThanOrEqual(3_000);
    const asked = { step_id: 'a', round: 2, remainingMs: 1_000, askedAtMs: Date.now() - 90_000 };
    const { execute } = newWorker();
    const end = await execute(run, { ...asked, paused_ms: before });
    expect(end).toMatchObject(held);
    const { leftMs } = end as { leftMs: number };
    expect(leftMs).toBeGreaterThan(3_900);
    expect(leftMs).toBeLessThanOrEqual(1_000 + paused_ms - before); // a minute less than with the earlier one
    expect(await execute(run, { ...asked, paused_ms })).not.toMatchObject(held);
  });

  test('never grows by more than what has passed since the step was requested', async () => {
    const run = await runOf('none-more');
    await holdRun(run);
    await lengthenPause(run, 3_600_000);
    const asked = { step_id: 'a', round: 2, remainingMs: 1_000, askedAtMs: Date.now() - 2_000 };
    const { leftMs } = (await newWorker().execute(run, asked)) as { leftMs: number };
    expect(leftMs).toBeGreaterThanOrEqual(3_000);
    expect(leftMs).toBeLessThanOrEqual(1_000 + (Date.now() - asked.askedAtMs));
  });

  test('does not run out in a pause: a call that fails after its time is held, not failed', async () => {
    const instance = await register({ name: 'overdue' });
    const run = await runOf('overdue');
    instance.handle = async (exec, response) => {
      await holdRun(run);
      await lengthenPause(run, 5_000);
      await fails(exec, response);
    };
    const asked = { step_id: 'a', remainingMs: 150, askedAtMs: Date.now() - 900 };
    expect(await newWorker().execute(run, asked)).toMatchObject(held);
  });
});

test('items are held each for itself', async () => {
  const instance = await register({ name: 'items' });
  instance.handle = fails;
  const run = await runOf('items', { for_each: { items: [1, 2, 3], max_parallel: 3 } });
  const { execute, decide } = newWorker();
  await decide({ run_id: run.run_id, step_ids: ['a'] });
  for (const item of [1, 2])
    expect(await execute(run, { step_id: 'a', item })).toMatchObject({ kind: 'retry' });
  await holdRun(run);
  for (const item of [1, 2]) expect(await execute(run, { step_id: 'a', item, round: 2 })).toMatchObject(held);
  expect(instance.execs).toHaveLength(2);
});

test('a paused run waits longer for an instance, by the time of its pause', async () => {
  const run = await runOf('absent', { wait_for_capability: '2m' });
  const { execute } = newWorker();
  expect(await execute(run, 'a')).toMatchObject({ kind: 'waiting', awaiting: 'capability' });
  await db.raw(
    `update step set wait_until = clock_timestamp() + interval '60 seconds',
    wait_since = clock_timestamp() - interval '60 seconds' where run_id = ?`,
    [run.run_id],
  );
  await holdRun(run);
  await lengthenPause(run, 30_000);
  await resume(run);
  const { left } = await db('step')
    .where({ run_id: run.run_id })
    .first(db.raw(`extract(epoch from wait_until - clock_timestamp())::float8 as left`));
  expect(left).toBeGreaterThan(65);
  expect(left).toBeLessThanOrEqual(90);
});
