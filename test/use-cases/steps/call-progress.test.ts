/**
 * Progress that an instance reports while it works: in the log of the run, for any executor of the step, and no more.
 */

import type { ServerResponse } from 'node:http';
import { type CallLogLine, callLogBounds } from '@capstan/core/call/log-lines';
import type { CallProgress } from '@capstan/core/call/outcome';
import type { StepLogData } from '@capstan/core/contracts/event';
import { expect, test } from 'vitest';
import { insertProgressNote } from '../../../src/db/step/step-progress.ts';
import { createCallProgressLog, createCallTextLog } from '../../../src/use-cases/steps/call.ts';
import { aRun } from '../../support/factories.ts';
import type { Handler } from '../../support/fleet.ts';
import { useSteps } from '../../support/steps.ts';
import { waitFor } from '../../support/wait.ts';

const world = useSteps();

/** Reports two steps of progress, and ends with this line. */
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

test('progress is a line of the log, and the answer is as ever', async () => {
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

test('progress is written at most twice a second, the last one always, and not after the end', async () => {
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
  for (const progress of [0.995, 1]) log.note({ progress }); // where half a second has passed, the first is written
  log.stop();
  log.note({ progress: 1 });
  expect((await notes()).map(({ data }) => data.progress)).not.toContain(1);
});

/** The text of each attempt, by its lines. */
async function textsOf(runId: string): Promise<{ attempt: number; data: StepLogData }[]> {
  const rows = world.db('event').where({ type: 'step.log', run_id: runId }).orderBy('id');
  return rows.select('attempt', 'data');
}

test('a text that comes in parts grows in the log, from the start in each attempt, and the result is whole', async () => {
  const instance = await world.register({ name: 'writer' });
  const run = await aRun(world.db, {
    project_id: world.projectId(),
    definition: {
      pipeline: 'p',
      version: '1',
      steps: [{ id: 'a', capability: 'writer', input: {}, retry: { max: 1 } }],
    },
  });
  const write = (response: ServerResponse, line: object) => response.write(`${JSON.stringify(line)}\n`);
  instance.handle = async ({ headers }, response) => {
    const attempt = Number(headers['x-attempt']);
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    write(response, { delta: { content: 'Hello,' } });
    await waitFor('it to be written', async () =>
      (await textsOf(run.run_id)).some((line) => line.attempt === attempt),
    );
    write(response, { delta: ' wor\u001b[31mld' });
    write(response, { delta: { index: 1, content: 'another choice' } });
    write(response, { delta: { tool_calls: [] } });
    if (attempt === 1) response.socket?.end();
    else response.end('{"ok":true,"output":{"text":"Hello, world"}}\n');
  };
  const worker = world.newWorker();
  const first = await worker.execute(run, 'a');
  const end = first.kind === 'retry' ? await worker.execute(run, { step_id: 'a', round: 2 }) : first;
  expect(end).toMatchObject({ kind: 'succeeded', output: { text: 'Hello, world' } });
  expect(instance.execs.map(({ headers }) => headers['x-stream'])).toEqual(['delta', 'delta']);
  const lines = await waitFor('all lines', async () => {
    const written = await textsOf(run.run_id);
    return written.length >= 4 ? written : undefined;
  });
  const line = (attempt: number, message: string) => ({
    attempt,
    data: { level: 'debug', message, delta: true, endpoint: instance.endpoint },
  });
  expect(lines).toEqual([1, 2].flatMap((at) => [line(at, 'Hello,'), line(at, ' world')]));
  await instance.stop();
});

test('a text is written at most twice a second and up to a limit, its rest at the end', async () => {
  const lines: CallLogLine[] = [];
  const own = { note: (line: CallLogLine) => lines.push(line) > 0, flush: () => undefined };
  const log = createCallTextLog(() => own);
  const { flush } = log.openLog({ attempt: 1, endpoint: 'http://a' });
  for (let n = 0; n < 100; n++) log.note({ content: `${n} ` });
  expect(lines.map(({ message }) => message)).toEqual(['0 ']);
  await waitFor('the second line', () => lines.length === 2);
  log.note('x'.repeat(callLogBounds.bytes));
  flush();
  log.note('beyond');
  flush();
  expect(lines.length).toBe(3);
  expect(lines.map(({ message }) => message).join('').length).toBe(callLogBounds.bytes);
});

test('progress of a step that has ended is not written', async () => {
  const { run_id } = await aRun(world.db, { project_id: world.projectId() });
  await world.db('step').insert({ run_id, step_id: 'c', state: 'running' });
  const before = (await notes()).length;
  const note = () => insertProgressNote(world.db, { run_id, step_id: 'c', item: 0 }, { progress: 0.5 });
  await note();
  await world.db('step').where({ run_id }).update({ state: 'cancelled', finished_at: new Date() });
  await note();
  expect((await notes()).length).toBe(before + 1);
});
