/** Starts of schedules on the real Temporal, with a worker in this process whose runs end when a test decides it. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { OverlapPolicy } from '@capstan/core/contracts/schedule';
import type { CancelRunRequest, ScheduledStart, ScheduledSubmission } from '@capstan/core/workflow-payloads';
import type { Client } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createBoundedCalls, openTemporal } from '../../src/clients/temporal/connection.ts';
import { createSchedules, type TemporalSchedules } from '../../src/clients/temporal/schedules.ts';
import { newId } from '../../src/parts/ids.ts';
import { connectTestEnvironment } from '../support/temporal.ts';
import { waitFor } from '../support/wait.ts';

const taskQueue = `scheduled-${randomBytes(6).toString('hex')}`;
const starts: ScheduledStart[] = [];
const cancels: CancelRunRequest[] = [];
const answers = new Map<string, ScheduledSubmission>();
let client: Client;
let schedules: TemporalSchedules;
let worker: Worker;
let working: Promise<void>;
let environment: TestWorkflowEnvironment;

beforeAll(async () => {
  process.env.TEMPORAL_ADDRESS = inject('temporalAddress');
  client = openTemporal();
  schedules = createSchedules(client, taskQueue, createBoundedCalls(client));
  environment = await connectTestEnvironment();
  worker = await Worker.create({
    connection: environment.nativeConnection,
    taskQueue,
    workflowBundle: { codePath: inject('workflowBundle') },
    activities: {
      submitRun: async (start: ScheduledStart) => {
        starts.push(start);
        return answers.get(start.schedule_id) ?? { run_id: `run_${starts.length}` };
      },
      cancelScheduledRun: async (request: CancelRunRequest) => void cancels.push(request),
    },
  });
  working = worker.run();
});
afterAll(async () => {
  worker?.shutdown();
  await working;
  await environment?.teardown();
  await client?.connection.close();
});

/** At a time that does not come during a test. */
async function aSchedule(overlap: OverlapPolicy) {
  const schedule_id = newId('schedule');
  const key = { project_id: 'prj_1', schedule_id, workflow_id: `leaping/${schedule_id}` };
  await schedules.put({
    ...key,
    name: 'leap',
    pipeline: 'leaping',
    calendar: 'never',
    starts: { lines: ['0 0 29 2 *'], timezone: 'UTC' },
    overlap,
    catch_up_ms: 60_000,
    paused: false,
    keeps_pause: false,
  });
  const mine = () => starts.filter(({ schedule_id }) => schedule_id === key.schedule_id);
  return {
    ...key,
    starts: mine,
    trigger: (requestId: string = randomUUID()) => schedules.trigger(key, overlap, requestId),
    info: async () => (await client.schedule.getHandle(key.workflow_id).describe()).info,
    started: (count: number) => waitFor(`start ${count}`, () => mine()[count - 1]),
    remove: () => schedules.remove(key),
  };
}

/** Starts by hand within a second share an id, one after the other: this is the one that is open now. */
async function openWorkflow({ workflow_id }: ScheduledStart) {
  const { runId } = await client.workflow.getHandle(workflow_id).describe();
  const handle = client.workflow.getHandle(workflow_id, runId);
  return {
    handle,
    end: () => handle.signal('woken', { step_id: '', item: 0 }),
    status: async () => (await handle.describe()).status.name,
    closed: () =>
      waitFor('the workflow to close', async () => {
        const { name } = (await handle.describe()).status;
        return name === 'RUNNING' ? undefined : name;
      }),
  };
}

test('a start asks for the run of its time, under an id of that time, and lasts until the run has ended', async () => {
  const schedule = await aSchedule('skip');
  const before = Math.floor(Date.now() / 1_000) * 1_000; // its time is of whole seconds
  expect(await schedule.trigger()).toBe('asked');
  const start = await schedule.started(1);
  expect(Date.parse(start.scheduled_at)).toBeGreaterThanOrEqual(before);
  expect(Date.parse(start.scheduled_at)).toBeLessThanOrEqual(Date.now());
  expect(start.workflow_id).toMatch(`leaping/${schedule.schedule_id}-20`);
  const workflow = await openWorkflow(start);
  expect(await workflow.status()).toBe('RUNNING');
  const scheduled = new Date(start.workflow_id.slice(schedule.workflow_id.length + 1));
  const isStarting = (at: Date) => schedules.isStarting(schedule, at, 60_000);
  expect(await isStarting(scheduled)).toBe(true);
  expect(await isStarting(new Date(scheduled.getTime() - 60_000))).toBe(false);
  await workflow.end();
  expect(await workflow.closed()).toBe('COMPLETED');
  expect(await isStarting(scheduled)).toBe(false);
  expect(await workflow.handle.result()).toEqual({ run_id: 'run_1' });
  await schedule.remove();
});

test('a start that is refused fails with the reason', async () => {
  const schedule = await aSchedule('skip');
  answers.set(schedule.schedule_id, { refused: { code: 'job_invalid', message: 'the job does not match' } });
  await schedule.trigger();
  const { handle, closed } = await openWorkflow(await schedule.started(1));
  expect(await closed()).toBe('FAILED');
  await expect(handle.result()).rejects.toMatchObject({
    cause: { type: 'job_invalid', message: 'the job does not match', nonRetryable: true },
  });
  await schedule.remove();
});

test('a start whose run has ended already does not wait for its end', async () => {
  const schedule = await aSchedule('skip');
  answers.set(schedule.schedule_id, { run_id: 'run_0', has_ended: true });
  await schedule.trigger();
  const { closed } = await openWorkflow(await schedule.started(1));
  expect(await closed()).toBe('COMPLETED');
  await schedule.remove();
});

test('a start that its policy skips reports that, and completes without a run', async () => {
  const schedule = await aSchedule('skip');
  answers.set(schedule.schedule_id, { skipped: 'run run_0 is still open' });
  await schedule.trigger();
  const { handle, closed } = await openWorkflow(await schedule.started(1));
  expect(await closed()).toBe('COMPLETED');
  expect(await handle.result()).toEqual({ skipped: 'run run_0 is still open' });
  await schedule.remove();
});

test('a trigger that is repeated under one request id starts once', async () => {
  const schedule = await aSchedule('buffer_all');
  await schedule.trigger('one');
  const { end, closed } = await openWorkflow(await schedule.started(1));
  await schedule.trigger('one');
  await schedule.trigger('two');
  await end();
  await closed();
  const { end: endSecond, closed: closedSecond } = await openWorkflow(await schedule.started(2));
  await endSecond();
  await closedSecond();
  expect((await schedule.info()).numActionsTaken).toBe(2);
  await schedule.remove();
});

test('cancel_other: the run is cancelled, and the next starts when it has ended, as a separate run', async () => {
  const schedule = await aSchedule('cancel_other');
  await schedule.trigger();
  const first = await schedule.started(1);
  const { end, status, closed } = await openWorkflow(first);
  await schedule.trigger();
  await waitFor('the cancel', () => cancels.length === 1);
  expect(cancels).toEqual([{ project_id: 'prj_1', run_id: `run_${starts.indexOf(first) + 1}` }]);
  expect([await status(), schedule.starts().length]).toEqual(['RUNNING', 1]);
  await end();
  expect(await closed()).toBe('CANCELLED');
  const second = await schedule.started(2);
  expect(schedule.starts()).toEqual([first, second]);
  await (await openWorkflow(second)).end();
  await schedule.remove();
});
