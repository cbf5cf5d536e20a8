import type { Run } from '@capstan/core/contracts/run';
import { runWorkflowId } from '@capstan/core/workflow-names';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { answer, echo, type Handler, type Instance, startInstance } from '../support/fleet.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { connectTestEnvironment } from '../support/temporal.ts';

let capstan: SharedCapstan;
let instance: Instance;
let db: Db;
let temporal: TestWorkflowEnvironment;
beforeAll(async () => {
  capstan = await shareCapstan();
  db = connectDatabase(capstan.databaseUrl, 1);
  instance = await startInstance(capstan, { name: 'brief' }); // no other file that shares it has the name
  temporal = await connectTestEnvironment();
  await ran(); // the first calls of a worker take longest
});
beforeEach(async () => {
  instance.handle = echo;
  instance.execs.length = 0;
  await db('instance').where({ name: 'brief' }).update({ breaker_until: null, breaker_openings: 0 });
});
afterAll(async () => {
  await temporal?.teardown();
  await db?.destroy();
  await instance?.stop();
});

const ids = ['a', 'b', 'c', 'd', 'e'];
const steps = ids.map((id, at) => ({
  id,
  capability: 'brief',
  dispatch: 'inline',
  escalate: { enabled: false },
  retry: { max: 2, initial: '10ms' },
  input: { id, before: at === 0 ? null : `{{ steps.${ids[at - 1]}.output.id }}` },
}));

async function ran(): Promise<Run> {
  return capstan.ended((await capstan.submit(steps)).run_id);
}
function called(): string {
  return instance.execs.map(({ input }) => input.id).join(' ');
}
function statesOf({ steps: all }: Run): string {
  return all.map(({ state }) => state).join(' ');
}

/** Local activities, and activities that went through the queue. */
async function countActivities(run: Run): Promise<{ local: number; queued: number }> {
  const handle = temporal.client.workflow.getHandle(runWorkflowId(run));
  await handle.result().catch(() => undefined);
  const { events } = await handle.fetchHistory();
  const all = events ?? [];
  return {
    local: all.filter((event) => event.markerRecordedEventAttributes != null).length,
    queued: all.filter((event) => event.activityTaskScheduledEventAttributes != null).length,
  };
}

/** Answers for `c` as given, for the others with their input. */
function atC(handle: Handler): Handler {
  return (exec, response) => (exec.input.id === 'c' ? handle(exec, response) : echo(exec, response));
}

test('steps that follow one another are executed together, each once, with what the one before answered', async () => {
  const run = await ran();
  expect(run).toMatchObject({ state: 'succeeded', output: { e: { id: 'e', before: 'd' } } });
  expect(called()).toBe('a b c d e');
  expect(run.steps.map(({ attempts }) => attempts)).toEqual([1, 1, 1, 1, 1]);
  const { local, queued } = await countActivities(run);
  // One of each batch; a call of more than 250 ms, on a busy machine, is waited for by an activity of the queue.
  expect(local).toBeGreaterThan(0);
  expect(queued).toBeLessThan(steps.length);
  const handle = temporal.client.workflow.getHandle(runWorkflowId(run));
  const { currentDetails } = await handle.query<{ currentDetails: string }>('__temporal_workflow_metadata');
  expect(currentDetails).toMatch(/^\[Run\]\(http.+\): succeeded\n/);
  expect(currentDetails).toContain('- brief is inline: the definition says so');
});

test('a step that is refused fails the run, and those after it are left out', async () => {
  instance.handle = atC((_exec, response) => answer(response, 422, { ok: false, error: 'no such clip' }));
  const run = await ran();
  expect(run).toMatchObject({ state: 'failed', error: { code: 'step_failed' } });
  expect(statesOf(run)).toBe('succeeded succeeded failed skipped skipped');
  expect(run.steps[2]).toMatchObject({ error: { code: 'input_rejected' }, attempts: 1 });
  expect(called()).toBe('a b c');
});

test('a step that must be retried is retried from the queue, and those after it are executed once', async () => {
  let failures = 1;
  instance.handle = atC((exec, response) => {
    failures -= 1;
    if (failures < 0) return echo(exec, response);
    return answer(response, 500, { error: 'out of memory' });
  });
  const run = await ran();
  expect(run).toMatchObject({ state: 'succeeded', output: { e: { id: 'e', before: 'd' } } });
  expect(called()).toBe('a b c c d e');
  expect(run.steps.map(({ attempts }) => attempts)).toEqual([1, 1, 2, 1, 1]);
  expect((await countActivities(run)).queued).toBeGreaterThan(0);
});

test('a slow step is the last of those that are executed together, and is called once', async () => {
  const slow: Handler = (exec, response) => void setTimeout(() => echo(exec, response), 300);
  instance.handle = atC(slow);
  const run = await ran();
  expect(statesOf(run)).toBe('succeeded succeeded succeeded succeeded succeeded');
  expect(called()).toBe('a b c d e');
  const { local, queued } = await countActivities(run);
  expect(local).toBeGreaterThan(1); // with it, and after it
  expect(queued).toBeGreaterThan(0); // it continues in the queue
});
