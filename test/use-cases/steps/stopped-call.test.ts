/** A step whose call has no more room while it runs, over real HTTP and a real database. */
import type { ServerResponse } from 'node:http';
import { addLength } from '@capstan/core/money/holds';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { raiseRun } from '../../../src/use-cases/money/budgets.ts';
import { aRun } from '../../support/factories.ts';
import type { Instance } from '../../support/fleet.ts';
import { stepsOf, useSteps } from '../../support/steps.ts';
import { waitFor } from '../../support/wait.ts';

const world = useSteps();
const { db } = world;
const name = 'model.stopped';
/** USD. */
const perToken = 0.000_01;
const cost_model = {
  type: 'per_call',
  rate_usd: 1,
  worst_case: `{{ 0.001 + 4096 * ${perToken} }}`,
  start: '{{ 0.001 }}',
  per_token: `{{ ${perToken} }}`,
};
let model: Instance;
/** Of the calls that are open. */
const writers = new Set<ServerResponse>();
let clock: NodeJS.Timeout;

beforeAll(async () => {
  model = await world.register({ name, cost_model, settle: 'reported', stops: true, tags: [] });
  const lengths = Array.from({ length: 64 }, (_, at) => 100 + at).reduce<readonly number[]>(addLength, []);
  await db('instance').where({ name }).update({ lengths });
  await world.newWorker().ctx.fleet.refresh();
  clock = setInterval(() => {
    for (const response of writers) response.write('{"delta": {"content": "ab"}}\n');
  }, 2);
  model.handle = (_, response) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    writers.add(response);
    response.on('close', () => writers.delete(response));
  };
});
afterAll(() => clearInterval(clock));

function aRunOf(budget_ceiling_usd: number, step: object = {}) {
  const steps = [{ id: 'a', capability: name, escalate: { enabled: false }, ...step }];
  return aRun(db, { ...stepsOf(steps), budget_ceiling_usd, project_id: world.projectId() });
}

async function paidFor({ run_id }: { readonly run_id: string }) {
  const attempts = await db('attempt')
    .where({ run_id })
    .orderBy('number')
    .select('settled_nano', 'certainty', 'pieces');
  return attempts.map(({ settled_nano, certainty, pieces }) => [
    Number(settled_nano) > 2e6,
    certainty,
    pieces > 0,
  ]);
}

test('waits for budget, pays what it has used, and is made again after a raise', async () => {
  const run = await aRunOf(0.004);
  const worker = world.newWorker();
  const first = await worker.execute(run, 'a');
  expect(first).toMatchObject({ kind: 'retry', error: { code: 'budget_reserved' } });
  await waitFor('the call to be stopped', () => writers.size === 0);
  expect(await paidFor(run)).toEqual([[true, 'estimated', true]]);
  expect(await worker.execute(run, { step_id: 'a', round: 2 })).toMatchObject({
    kind: 'waiting',
    awaiting: 'budget',
  });

  await raiseRun(db, run, { ceilingUsd: 1, by: 'key_1' });
  model.handle = (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ ok: true, output: { text: 'done', cost_usd: 0.0015 } }));
  };
  await waitFor('its answer', async () => {
    const { kind } = await world.newWorker().execute(run, { step_id: 'a', round: 3 });
    return kind === 'succeeded';
  });
});
