import type { Plan } from '@capstan/core/contracts/plan';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Instance, startInstance } from '../support/fleet.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

let capstan: SharedCapstan;
let instances: Instance[];
beforeAll(async () => {
  capstan = await shareCapstan();
  const cheap = { type: 'per_call', rate_usd: 0.1 };
  const dear = { type: 'per_call', rate_usd: 0.2 };
  instances = [
    await startInstance(capstan, { name: 'list' }),
    await startInstance(capstan, { name: 'paint', cost_model: cheap, tags: [] }),
    await startInstance(capstan, { name: 'paint', cost_model: dear, tags: ['big'] }),
  ];
});
afterAll(async () => {
  await Promise.all((instances ?? []).map((instance) => instance.stop()));
});

const steps = [
  { id: 'all', capability: 'list', input: { n: '{{ job.n }}' } },
  { id: 'first', capability: 'paint', depends_on: ['all'], when: 'job.paints' },
  { id: 'big', capability: 'paint', tags: ['big'], depends_on: ['all'] },
  { id: 'other', capability: 'paint', depends_on: ['all'], when: '!job.paints' },
  { id: 'after', capability: 'paint', depends_on: ['other'] },
  { id: 'end', capability: 'list', depends_on: ['after', 'big'], run_if: 'any_succeeded' },
];
const job = { n: 1, paints: true };

test('a run does what its plan predicts, and the plan makes no call', async () => {
  const definition = { pipeline: 'test', version: '1', steps };
  const plan = await waitFor('every instance to be known', async () => {
    const { body } = await capstan.request<Plan>('POST', '/v1/plan', { definition, job });
    const isKnown = body.steps.every(({ happens, chosen }) => happens === 'no' || chosen !== null);
    return isKnown ? body : undefined;
  });
  expect(instances.map(({ execs }) => execs.length)).toEqual([0, 0, 0]);
  const { run_id } = await capstan.submit(steps, job);
  const run = await capstan.ended(run_id);
  expect(run.state).toBe('succeeded');
  const done = Object.fromEntries(run.steps.map(({ id, state, endpoint }) => [id, { state, endpoint }]));
  for (const { id, happens, chosen } of plan.steps) {
    expect([id, done[id]]).toEqual([
      id,
      happens === 'no' ? { state: 'skipped', endpoint: undefined } : { state: 'succeeded', endpoint: chosen },
    ]);
  }
  expect(run.cost_usd).toBe(plan.cost_usd.expected);
});
