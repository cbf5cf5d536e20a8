import type { Run, RunSummary } from '@capstan/core/contracts/run';
import type { Schedule } from '@capstan/core/contracts/schedule';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openTemporal } from '../../src/clients/temporal/connection.ts';
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

/** As Temporal does at a time of the calendar. */
async function startByClock({ pipeline, schedule_id }: Schedule): Promise<void> {
  process.env.TEMPORAL_ADDRESS = inject('temporalAddress');
  const client = openTemporal();
  await client.schedule.getHandle(`${pipeline}/${schedule_id}`).trigger();
  await client.connection.close();
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
  expect(await trigger(schedule)).toBe(409);
  const [run, ...others] = await runsOf(schedule);
  expect(others).toEqual([]);
  await startByClock(schedule);
  const { body } = await waitFor('the skip to be counted', async () => {
    const seen = await capstan.request<Schedule>('GET', `/v1/schedules/${schedule.schedule_id}`);
    return seen.body.skipped === null ? undefined : seen;
  });
  expect(body.skipped).toMatchObject({ count: 1, reason: expect.stringContaining(run?.run_id ?? '') });
  expect(body.last_start).toMatchObject({ run_id: run?.run_id, state: 'running' });
  release();
  expect(await capstan.ended(run?.run_id ?? '')).toMatchObject({
    state: 'succeeded',
    output: { a: { n: 7 } },
  });
  expect(await trigger(schedule)).toBe(202);
  (await nextCall(before + 2)).release();
});

test('a start that is refused is a failed run, which succeeds when its cause is mended and it is run again', async () => {
  const steps = [{ id: 'a', capability: 'hold', input: { n: '{{ job.n }}' } }];
  const strict = { type: 'object', properties: { n: { type: 'string' } } };
  const store = (version: string, more: object) =>
    capstan.request('POST', '/v1/pipelines', { pipeline: 'strict', version, steps, ...more });
  await store('1', {});
  const schedule = await add({ name: 'refused', pipeline: 'strict' });
  await store('2', { job_schema: strict });
  await startByClock(schedule);
  const path = `/v1/schedules/${schedule.schedule_id}`;
  const last = await waitFor('the failed run', async () => {
    return (await capstan.request<Schedule>('GET', path)).body.last_start ?? undefined;
  });
  expect(last).toMatchObject({ state: 'failed', error: { code: 'job_invalid' } });
  const before = held.length;
  await capstan.request('PUT', path, aBody({ name: 'refused', pipeline: 'strict', job: { n: 'seven' } }));
  const { body } = await capstan.request<Run>('POST', `/v1/runs/${last.run_id}/rerun`);
  (await nextCall(before + 1)).release();
  expect(await capstan.ended(body.run_id)).toMatchObject({
    state: 'succeeded',
    output: { a: { n: 'seven' } },
  });
});

test('a start cancels the run before it, and begins when that has ended: cancel_other', async () => {
  const schedule = await add({ name: 'cancelling', overlap: 'cancel_other' });
  const before = held.length;
  expect(await trigger(schedule)).toBe(202);
  await nextCall(before + 1);
  const [first] = await runsOf(schedule);
  expect(await trigger(schedule)).toBe(202);
  const { release } = await nextCall(before + 2);
  const { body } = await capstan.request<Run>('GET', `/v1/runs/${first?.run_id}`);
  expect(body.state).toBe('cancelled');
  release();
  const [second] = await runsOf(schedule);
  expect(await capstan.ended(second?.run_id ?? '')).toMatchObject({ state: 'succeeded' });
});
