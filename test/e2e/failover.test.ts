import type { CapabilityDetail } from '@capstan/core/contracts/capability';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import { beforeAll, expect, test } from 'vitest';
import { answer, startInstance } from '../support/fleet.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

let capstan: SharedCapstan;

beforeAll(async () => {
  capstan = await shareCapstan();
});

const paid = { cost_model: { type: 'per_call', rate_usd: 0.02 }, tags: ['hosted'] };

test('the free local instance gets the work; when it dies at work the run completes on the paid one', async () => {
  const free = await startInstance(capstan, { name: 'render' });
  const hosted = await startInstance(capstan, { name: 'render', ...paid });
  const first = await capstan.submit([{ id: 'a', capability: 'render', input: {} }]);
  await capstan.ended(first.run_id);
  expect([free.execs.length, hosted.execs.length]).toEqual([1, 0]);

  free.handle = () => undefined;
  // A retry would come an hour later. `npm run faults -- failover` prints how soon the other one begins.
  const retry = { max: 1, initial: '1h' };
  const { run_id } = await capstan.submit([{ id: 'a', capability: 'render', retry, input: {} }]);
  await waitFor('the call to arrive', () => free.execs.length === 2);
  await free.stop();
  await waitFor('the next attempt', () => hosted.execs.length === 1);

  expect(await capstan.ended(run_id)).toMatchObject({ state: 'succeeded', cost_usd: 0.02 });
  const { body } = await capstan.request<StepDetail>('GET', `/v1/runs/${run_id}/steps/a`);
  expect(body.attempts).toMatchObject([
    { endpoint: free.endpoint, state: 'lost', ambiguity: 'ambiguous', cost_usd: 0, certainty: 'estimated' },
    {
      endpoint: hosted.endpoint,
      state: 'settled',
      ambiguity: 'answered',
      cost_usd: 0.02,
      certainty: 'exact',
    },
  ]);
  expect(body.attempts[0]?.decision?.reason).toContain('free, local and idle');
  expect(body.attempts[1]?.decision?.candidates).toEqual(
    expect.arrayContaining([expect.objectContaining({ endpoint: free.endpoint })]),
  );
  await waitFor('the dead instance to be down', async () => {
    const detail = await capstan.request<CapabilityDetail>('GET', '/v1/capabilities/render');
    return detail.body.instances.find(({ endpoint }) => endpoint === free.endpoint)?.state === 'down';
  });
  await hosted.stop();
});

test('an instance that refuses connections is passed over within the same attempt', async () => {
  const gone = await startInstance(capstan, { name: 'cut' });
  const warmUp = await capstan.submit([{ id: 'a', capability: 'cut', input: {} }]);
  await capstan.ended(warmUp.run_id);
  const hosted = await startInstance(capstan, { name: 'cut', ...paid });
  await gone.stop();
  const { run_id } = await capstan.submit([{ id: 'a', capability: 'cut', input: {} }]);
  const run = await capstan.ended(run_id);
  expect(run).toMatchObject({ state: 'succeeded', steps: [{ attempts: 2, endpoint: hosted.endpoint }] });
  const { body } = await capstan.request<StepDetail>('GET', `/v1/runs/${run_id}/steps/a`);
  expect(body.attempts[0]).toMatchObject({ state: 'released', ambiguity: 'not_sent', cost_usd: 0 });
  await hosted.stop();
});

test('a free idle instance of one slot never has two calls at once', async () => {
  let atWork = 0;
  let most = 0;
  const only = await startInstance(capstan, { name: 'one', max_concurrency: 1 });
  only.handle = async (exec, response) => {
    atWork += 1;
    most = Math.max(most, atWork);
    await new Promise((resolve) => setTimeout(resolve, 20));
    atWork -= 1;
    answer(response, 200, exec.input);
  };
  const steps = Array.from({ length: 12 }, (_, n) => ({ id: `s${n}`, capability: 'one', input: { n } }));
  const { run_id } = await capstan.submit(steps);
  expect(await capstan.ended(run_id)).toMatchObject({ state: 'succeeded' });
  expect(most).toBe(1);
  expect(only.execs.length).toBe(12);
  await only.stop();
});

test('a call over every price ceiling fails and reports that, at no cost', async () => {
  const hosted = await startInstance(capstan, { name: 'dear', ...paid });
  const { run_id } = await capstan.submit([
    { id: 'a', capability: 'dear', budget_ceiling_usd: 0.01, input: {} },
  ]);
  expect(await capstan.ended(run_id)).toMatchObject({
    state: 'failed',
    cost_usd: 0,
    steps: [{ error: { code: 'ceiling_too_low' } }],
  });
  expect(hosted.execs).toEqual([]);
  await hosted.stop();
});
