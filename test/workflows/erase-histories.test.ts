import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRunWorkflows } from '../../src/clients/temporal/run-workflows.ts';
import { connectTestEnvironment } from '../support/temporal.ts';
import { waitFor } from '../support/wait.ts';

let environment: Awaited<ReturnType<typeof connectTestEnvironment>>;
beforeAll(async () => {
  environment = await connectTestEnvironment();
});
afterAll(() => environment?.teardown());

test('what Temporal keeps of a run goes with its ladders, and nothing of another run', async () => {
  const { client } = environment;
  const taskQueue = `erase-${randomBytes(4).toString('hex')}`; // that nobody works on
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
