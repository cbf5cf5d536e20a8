/** Progress that an instance tells while it works: in the log of the run, for whoever executes the step, and no more. */
import { expect, test } from 'vitest';
import type { CallProgress } from '../../../src/core/call/outcome.ts';
import { insertProgressNote } from '../../../src/db/step/step-progress.ts';
import { createCallProgressLog } from '../../../src/services/steps/call.ts';
import { aRun } from '../../support/factories.ts';
import type { Handler } from '../../support/fleet.ts';
import { useSteps } from '../../support/steps.ts';
import { waitFor } from '../../support/wait.ts';

const world = useSteps();

/** Tells two steps of progress, and ends with this line. */
function telling(last: object): Handler {
  return async (_, response) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.write('{"progress":0.4,"message":"encoding"}\n');
    await waitFor('the first to be written', async () => (await notes()).length > 0);
    response.write('{"progress":0.5}\n');
    response.end(`${JSON.stringify(last)}\n`);
  };
}

function notes(): Promise<{ step_id: string; data: CallProgress }[]> {
  return world.db('event').where({ type: 'step.progress' }).orderBy('id').select('step_id', 'data');
}

test('is a line of the log, and the answer is as ever', async () => {
  const instance = await world.register({ name: 'concat' });
  instance.handle = telling({ ok: true, output: { path: 'out' } });
  const run = await aRun(world.db, { project_id: world.projectId() });
  const end = await world.newWorker().execute(run, 'a');
  expect(end).toMatchObject({ kind: 'succeeded', output: { path: 'out' } });
  expect((await notes())[0]).toEqual({ step_id: 'a', data: { progress: 0.4, message: 'encoding' } });
  expect(instance.execs[0]?.headers.accept).toContain('application/x-ndjson');
  instance.handle = telling({ ok: false, error: 'too long', status: 422 });
  const other = await aRun(world.db, { project_id: world.projectId() });
  const failed = await world
    .newWorker()
    .execute(other, { step_id: 'a' })
    .catch((error: Error) => error);
  expect(JSON.stringify(failed) + String(failed)).toMatch(/too long|escalates/);
  await instance.stop();
});

test('is written at most twice a second, the last one always, and not after the end', async () => {
  const run = await aRun(world.db, { project_id: world.projectId() });
  await world.db('event').where({ type: 'step.progress' }).delete();
  await world.db('step').insert({ run_id: run.run_id, step_id: 'b', state: 'running' });
  const told: number[] = [];
  const key = { run_id: run.run_id, step_id: 'b', item: 0, revision: 0 };
  const log = createCallProgressLog(world.db, key, ({ progress }) => told.push(progress));
  for (let n = 0; n < 100; n++) log.note({ progress: n / 100 });
  expect(told).toHaveLength(100);
  const [first, last] = await waitFor('the last one', async () => {
    const written = await notes();
    return written.length === 2 ? written : undefined;
  });
  expect([first?.data.progress, last?.data.progress]).toEqual([0, 0.99]);
  log.note({ progress: 1 });
  log.stop();
  log.note({ progress: 1 });
  expect((await notes()).length).toBe(2);
});

test('of a step that has ended nothing is written any more', async () => {
  const { run_id } = await aRun(world.db, { project_id: world.projectId() });
  await world.db('step').insert({ run_id, step_id: 'c', state: 'running' });
  const before = (await notes()).length;
  const note = () => insertProgressNote(world.db, { run_id, step_id: 'c', item: 0 }, { progress: 0.5 });
  await note();
  await world.db('step').where({ run_id }).update({ state: 'cancelled', finished_at: new Date() });
  await note();
  expect((await notes()).length).toBe(before + 1);
});
