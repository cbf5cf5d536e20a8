/** The call of a corrected input, when no slot is free: it waits as the step's own call does. */

import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import type { Advanced } from '@capstan/core/workflow-payloads';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { pauseRun, resumeRun } from '../../../../src/db/run/run-control.ts';
import { callNext } from '../../../../src/db/step/call-line.ts';
import { execOn, registerInstance } from '../../../support/direct-calls.ts';
import { answer, echo, type Instance } from '../../../support/fleet.ts';
import { type LadderWorld, startLadderWorld, transcode } from '../../../support/ladders.ts';
import { waitFor } from '../../../support/wait.ts';

let world: LadderWorld;
let project: string;
const instances: Instance[] = [];

beforeAll(async () => {
  world = await startLadderWorld({ fast: 0 });
  world.answer(({ kind }) =>
    kind === 'advise'
      ? { instructions: 'round it down to even', reasoning: 'it is odd', suggested_executor_level: 1 }
      : { patch: [{ op: 'replace', path: '/rate', value: 44_100 }], used_skills: [] },
  );
});
afterAll(async () => {
  await Promise.all(instances.map((instance) => instance.stop()));
  await world.close();
});
beforeEach(async () => {
  project = await world.newProject();
});

/** A step whose input is wrong, on an instance with one slot, which another call takes before it is corrected. */
async function aCorrectionWithoutSlot(capability: string, step: Partial<StepDefinition> = {}) {
  const cutter = await registerInstance(world.api, { ...transcode, name: capability, max_concurrency: 1 });
  instances.push(cutter);
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  cutter.handle = async (exec, response) => {
    if (exec.input.source === 'other') await released;
    if (Number(exec.input.rate) % 2 === 0) return echo(exec, response);
    return answer(response, 422, { ok: false, error: `the rate ${exec.input.rate} must be even` });
  };
  const failed = await world.failStep({
    project_id: project,
    input: { rate: 44_101 },
    step: { capability, ...step },
  });
  const other = execOn(world.api, capability, { body: { input: { rate: 8_000, source: 'other' } } });
  await waitFor('the other call to arrive', () => cutter.execs.length === 2);
  let place: Advanced = failed.place;
  for (let made = 0; made < 5 && place.in_line === undefined; made += 1) place = await world.advance(place);
  const { run_id } = failed;
  return {
    cutter,
    run: { project_id: project, run_id },
    place,
    /** Ends the other call. */
    release: async () => {
      release();
      await other;
    },
    row: () => world.api.db('step').where({ run_id }).first('state', 'awaiting', 'error'),
    /** Its turn comes. */
    called: async () => {
      await callNext(world.api.db, capability, 1);
      return world.api.db('queued_call').where({ run_id }).whereNotNull('called_at').pluck('step_id');
    },
  };
}

test('a corrected call waits in line as a row, the ladder ends until it is called, and then the same input is sent', async () => {
  const { cutter, run, place, release, row, called } = await aCorrectionWithoutSlot('cut-one');
  expect(place).toMatchObject({ command: { type: 'execute', level: 1 }, in_line: { until: null } });
  expect(await row()).toMatchObject({ state: 'waiting', awaiting: 'slot' });
  expect(cutter.execs.length).toBe(2);
  const asked = world.provider.requests.length;
  await release();
  expect(await called()).toEqual(['a']);
  const end = await world.climb(place);
  expect(end.command).toMatchObject({ type: 'end', outcome: 'succeeded' });
  expect(cutter.execs.at(-1)?.input).toEqual({ rate: 44_100 });
  const keys = await world.api.db('attempt').where({ run_id: run.run_id, step_id: 'a' }).pluck('key');
  expect(keys.sort()).toEqual([`${run.run_id}.a.0.0`, `${run.run_id}.a.0.1`]);
  expect([cutter.execs.length, world.provider.requests.length]).toEqual([3, asked]);
  expect(await row()).toMatchObject({ state: 'succeeded', awaiting: null });
});

test('called without a result it waits on, and takes no slot before its turn', async () => {
  const { place, release, row, called } = await aCorrectionWithoutSlot('cut-two');
  await called();
  expect(await world.advance(place)).toEqual(place);
  await release();
  expect(await world.advance(place)).toEqual(place); // it was not called again
  expect(await row()).toMatchObject({ state: 'waiting', awaiting: 'slot' });
});

test('queue_timeout fails the step as it would for its own call, and no model is asked', async () => {
  const { cutter, run, place, release, row } = await aCorrectionWithoutSlot('cut-three', {
    queue_timeout: '1h',
  });
  const leftMs = (place.in_line?.until ?? 0) - Date.now();
  expect(leftMs).toBeGreaterThan(3_000_000);
  await world.api
    .db('step')
    .where({ run_id: run.run_id })
    .update({ wait_until: world.api.db.raw(`clock_timestamp() - interval '1 s'`) });
  const end = await world.advance(place);
  const error = { code: 'queue_timeout', message: expect.stringContaining('queue_timeout is 1h') };
  expect(end.command).toMatchObject({ type: 'end', outcome: 'failed', error });
  expect(await row()).toMatchObject({ state: 'failed', error });
  const reviews = await world.api.db('review').where({ run_id: run.run_id }).select('review_id');
  expect([reviews, cutter.execs.length]).toEqual([[], 2]);
  await release();
});

test('a pause keeps its place, and holds it also when it was called before', async () => {
  const { cutter, run, place, release, called } = await aCorrectionWithoutSlot('cut-four', {
    queue_timeout: '1h',
  });
  await pauseRun(world.api.db, run);
  await release();
  expect(await called()).toEqual([]);
  expect(await world.advance(place)).toMatchObject({ is_held: true });
  await resumeRun(world.api.db, run);
  expect(await called()).toEqual(['a']);
  await pauseRun(world.api.db, run);
  expect(await world.advance(place)).toMatchObject({ is_held: true });
  expect(cutter.execs.length).toBe(2);
  await resumeRun(world.api.db, run);
  expect((await world.climb(place)).command).toMatchObject({ type: 'end', outcome: 'succeeded' });
});
