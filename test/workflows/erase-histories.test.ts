import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createBoundedCalls } from '../../src/clients/temporal/connection.ts';
import { createRunWorkflows } from '../../src/clients/temporal/run-workflows.ts';
import { createSchedules } from '../../src/clients/temporal/schedules.ts';
import { connectTestEnvironment } from '../support/temporal.ts';
import { waitFor } from '../support/wait.ts';

let environment: Awaited<ReturnType<typeof connectTestEnvironment>>;
beforeAll(async () => {
  environment = await connectTestEnvironment();
});
afterAll(() => environment?.teardown());

test('the histories of a run are deleted with its ladders, and those of no other run', async () => {
  const { client } = environment;
  const taskQueue = `erase-${randomBytes(4).toString('hex')}`; // that has no worker
  const workflows = createRunWorkflows(client, taskQueue);
  const run = { pipeline: 'erased', run_id: `run_${taskQueue}` };
  const other = { pipeline: 'erased', run_id: `${run.run_id}1` };
  const start = (workflowId: string) =>
    client.workflow.start('runPipeline', { workflowId, taskQueue, args: [] });
  const ladder = await start(`erased/${run.run_id}/a/ladder`);
  await Promise.all([start(`erased/${run.run_id}`), start(`erased/${other.run_id}`)]);
  await waitFor('all to be listed', async () => {
    const ids: string[] = [];
    for await (const { workflowId } of client.workflow.list({ query: `TaskQueue = '${taskQueue}'` }))
      ids.push(workflowId);
    return ids.length === 3;
  });
  await waitFor('all of it to be gone', () => workflows.erase(run));
  expect(await workflows.isForgotten(run)).toBe(true);
  await expect(ladder.describe()).rejects.toThrow();
  expect(await workflows.isOpen(other)).toBe(true);
  expect(await workflows.erase(run)).toBe(true);
  await workflows.terminate(other, 'the test is over');
});

test('the histories of a schedule are deleted with its starts, and those of no other schedule', async () => {
  const { client } = environment;
  const taskQueue = `erase-${randomBytes(4).toString('hex')}`; // that has no worker
  const workflows = createRunWorkflows(client, taskQueue);
  const schedules = createSchedules(client, taskQueue, createBoundedCalls(client));
  const [erased, other] = [`erased/sch_${taskQueue}`, `erased/sch_${taskQueue}1`];
  for (const workflow_id of [erased, other]) {
    const facts = { project_id: 'p', schedule_id: 's', name: 'n', pipeline: 'erased', workflow_id };
    const rules = { overlap: 'allow_all', catch_up_ms: 60_000, paused: false, keeps_pause: false } as const;
    await schedules.put({ ...facts, ...rules, calendar: 'never', starts: { calendars: [] } });
    await schedules.trigger({ workflow_id }, 'allow_all', workflow_id);
  }
  const listed = async (prefix: string) => {
    const ids: string[] = [];
    const query = `WorkflowId STARTS_WITH '${prefix}-'`;
    for await (const { workflowId } of client.workflow.list({ query })) ids.push(workflowId);
    return ids;
  };
  await waitFor(
    'both to have started',
    async () => (await listed(erased)).length * (await listed(other)).length,
  );
  await schedules.remove({ workflow_id: erased });
  await waitFor('all of it to be gone', () => workflows.eraseSchedule(erased));
  expect(await listed(erased)).toEqual([]);
  expect(await schedules.standing({ workflow_id: erased }, 60_000)).toBeNull();
  expect(await listed(other)).toHaveLength(1);
  expect(await schedules.standing({ workflow_id: other }, 60_000)).toEqual({ paused: null });
  await schedules.remove({ workflow_id: other });
  await waitFor('the rest to be gone', () => workflows.eraseSchedule(other));
});
