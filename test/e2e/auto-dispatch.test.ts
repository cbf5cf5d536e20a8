import type { Plan } from '@capstan/core/contracts/plan';
import type { Run } from '@capstan/core/contracts/run';
import { runWorkflowId } from '@capstan/core/workflow-names';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { type Instance, startInstance } from '../support/fleet.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { connectTestEnvironment } from '../support/temporal.ts';
import { waitFor } from '../support/wait.ts';

const capability = 'says-nothing';
let capstan: SharedCapstan;
let instance: Instance;
let db: Db;
let temporal: TestWorkflowEnvironment;
beforeAll(async () => {
  capstan = await shareCapstan();
  db = connectDatabase(capstan.databaseUrl, 1);
  instance = await startInstance(capstan, { name: capability });
  temporal = await connectTestEnvironment();
});
afterAll(async () => {
  await temporal?.teardown();
  await db?.destroy();
  await instance?.stop();
});

const steps = ['a', 'b', 'c', 'd', 'e'].map((id, at, ids) => ({
  id,
  capability,
  input: { id, before: at === 0 ? null : `{{ steps.${ids[at - 1]}.output.id }}` },
}));
const results = { e: { id: 'e', before: 'd' } };

async function ran(): Promise<Run> {
  return capstan.ended((await capstan.submit(steps)).run_id);
}

/** Steps that went through the queue. */
async function countQueued(run: Run): Promise<number> {
  const handle = temporal.client.workflow.getHandle(runWorkflowId(run));
  const { events } = await handle.fetchHistory();
  return (events ?? []).filter((event) => event.activityTaskScheduledEventAttributes != null).length;
}

/** A worker writes down what it has seen of calls two seconds after them, over what a test has written. */
async function recorded(calls: number): Promise<void> {
  await waitFor(`${calls} calls to be recorded`, async () => {
    const { success_count: count } = await db('instance').where({ name: capability }).first('success_count');
    return Number(count) > 0.9 * calls; // earlier calls count a little less
  });
}

/** The server sees the row of the instance in the database. */
async function untilDecided(code: 'short' | 'slow'): Promise<void> {
  const plan = { definition: { pipeline: 'p', version: '1', steps: [{ id: 'a', capability }] } };
  await waitFor(`the capability to be ${code}`, async () => {
    const { body } = await capstan.request<Plan>('POST', '/v1/plan', plan);
    return body.steps[0]?.dispatch?.code === code;
  });
}

test('steps without a setting go through the queue, then no more, and again when they have become slow', async () => {
  const first = await ran();
  expect([first.dispatch?.[0]?.code, await countQueued(first)]).toEqual(['unknown', 5]);
  await recorded(steps.length);
  // However slow the machine of the test is.
  await db('instance').where({ name: capability }).update({ duration_ms: 5, deviation_ms: 1 });
  await untilDecided('short');
  const second = await ran();
  expect(second.dispatch?.[0]?.code).toBe('short');
  expect(await countQueued(second)).toBeLessThan(steps.length); // none, unless the machine is slow
  await recorded(2 * steps.length);
  await db('instance').where({ name: capability }).update({ duration_ms: 5_000 });
  await untilDecided('slow');
  const third = await ran();
  expect([third.dispatch?.[0]?.code, await countQueued(third)]).toEqual(['slow', 5]);
  for (const { state, output } of [first, second, third]) {
    expect({ state, output }).toEqual({ state: 'succeeded', output: results });
  }
});
