import { expect, it } from 'vitest';
import type { StepDefinition } from '../../../src/contracts/pipeline.ts';
import { aRun } from '../../support/factories.ts';
import { answer, echo, type Handler } from '../../support/fleet.ts';
import { stepsOf, useSteps } from '../../support/steps.ts';

const world = useSteps();
const { db } = world;

const inline = { step_id: 'a', inline: true, remainingMs: 800 };
const queued = { step_id: 'a', again: true };

async function aStep(capability: string, handle: Handler, step: Partial<StepDefinition> = {}) {
  const instance = await world.register({ name: capability });
  instance.handle = handle;
  return { instance, run: await aRun(db, stepsOf([{ id: 'a', capability, ...step }])) };
}

it('what has to be tried again later is no failure of an inline step: the queue goes on with it', async () => {
  const { instance, run } = await aStep('busy', (_exec, response) => {
    response.setHeader('retry-after', '60');
    answer(response, 429, { ok: false, error: 'busy' });
  });
  const end = await world.newWorker().execute(run, { ...inline, remainingMs: 30_000 });
  expect(end).toMatchObject({ kind: 'retry', error: { code: 'overloaded' } });
  expect('delayMs' in end && end.delayMs >= 60_000).toBe(true);
  const row = await db('step').where({ run_id: run.run_id }).first('state');
  expect(row?.state).toBe('retrying');
  instance.handle = echo;
  await db('instance').where({ name: 'busy' }).update({ breaker_until: null });
  expect(await world.newWorker().execute(run, queued)).toMatchObject({ kind: 'succeeded' });
});

it('a call that takes longer than an inline step may is left, and not counted', async () => {
  const { instance, run } = await aStep('slow', () => undefined, { retry: { max: 1 } });
  for (const _ of [1, 2, 3]) {
    expect(await world.newWorker().execute(run, inline)).toMatchObject({ kind: 'retry' });
  }
  const attempts = await db('attempt').where({ run_id: run.run_id }).select('counted', 'key');
  expect(attempts).toHaveLength(3);
  expect(new Set(attempts.map(({ counted, key }) => `${key} ${counted}`))).toEqual(
    new Set([`${run.run_id}.a.0.0 false`]),
  );
  instance.handle = echo;
  expect(await world.newWorker().execute(run, queued)).toMatchObject({ kind: 'succeeded' });
});

it('a step that is sent at most once is not sent inline', async () => {
  const { instance, run } = await aStep('once', echo, { retry: { max: 0 } });
  expect(await world.newWorker().execute(run, inline)).toMatchObject({ kind: 'retry', delayMs: 0 });
  expect(instance.execs).toEqual([]);
  expect(await world.newWorker().execute(run, queued)).toMatchObject({ kind: 'succeeded' });
});
