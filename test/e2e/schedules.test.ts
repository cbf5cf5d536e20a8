import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Run, RunSummary } from '../../src/contracts/run.ts';
import type { Schedule } from '../../src/contracts/schedule.ts';
import { answer, type Exec, type Instance, startInstance } from '../support/fleet.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

let capstan: SharedCapstan;
let instance: Instance;
const held: { exec: Exec; release: () => void }[] = [];

beforeAll(async () => {
  capstan = await shareCapstan();
  instance = await startInstance(capstan, { name: 'hold' });
  instance.handle = (exec, response) =>
    void held.push({ exec, release: () => answer(response, 200, { ok: true, output: exec.input }) });
  const steps = [{ id: 'a', capability: 'hold', input: { n: '{{ job.n }}' } }];
  await capstan.request('POST', '/v1/pipelines', { pipeline: 'nightly', version: '1', steps });
});
afterAll(async () => {
  await instance?.stop();
});

/** At a time that does not come during a test. */
function aBody(body: object) {
  return { pipeline: 'nightly', cron: '0 0 29 2 *', job: { n: 7 }, ...body };
}

async function add(body: object): Promise<Schedule> {
  const { status, body: schedule } = await capstan.request<Schedule>('POST', '/v1/schedules', aBody(body));
  expect(status).toBe(201);
  return schedule;
}

async function trigger({ schedule_id }: Schedule): Promise<number> {
  return (await capstan.request('POST', `/v1/schedules/${schedule_id}/trigger`)).status;
}

/** Newest first. */
async function runsOf({ schedule_id }: Schedule): Promise<RunSummary[]> {
  const { body } = await capstan.request<{ items: RunSummary[] }>('GET', '/v1/runs?pipeline=nightly');
  return body.items.filter((run) => run.schedule_id === schedule_id);
}

async function nextCall(count: number): Promise<{ exec: Exec; release: () => void }> {
  return waitFor(`call ${count}`, () => held[count - 1]);
}

test('a start gives a run, and the next one waits for its end: skip', async () => {
  const schedule = await add({ name: 'skipping', overlap: 'skip' });
  const before = held.length;
  expect(await trigger(schedule)).toBe(202);
  const { exec, release } = await nextCall(before + 1);
  expect(exec.input).toEqual({ n: 7 });
  expect(await trigger(schedule)).toBe(202);
  const [run, ...others] = await runsOf(schedule);
  expect(others).toEqual([]);
  release();
  expect(await capstan.ended(run?.run_id ?? '')).toMatchObject({
    state: 'succeeded',
    output: { a: { n: 7 } },
  });
  // Until Temporal has heard of the end, a start is skipped.
  await waitFor('the next run', async () => {
    await trigger(schedule);
    return (await runsOf(schedule)).length === 2;
  });
  (await nextCall(before + 2)).release();
});

test('a start cancels the run before it, and begins when that has ended: cancel_other', async () => {
  const schedule = await add({ name: 'cancelling', overlap: 'cancel_other' });
  const before = held.length;
  await trigger(schedule);
  await nextCall(before + 1);
  const [first] = await runsOf(schedule);
  await trigger(schedule);
  const { release } = await nextCall(before + 2);
  const { body } = await capstan.request<Run>('GET', `/v1/runs/${first?.run_id}`);
  expect(body.state).toBe('cancelled');
  release();
  const [second] = await runsOf(schedule);
  expect(await capstan.ended(second?.run_id ?? '')).toMatchObject({ state: 'succeeded' });
});
