import { afterAll, beforeAll, expect, test } from 'vitest';
import type { StepDetail } from '../../src/contracts/run.ts';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { echo, type Instance, startInstance } from '../support/fleet.ts';
import { waitFor } from '../support/wait.ts';

let capstan: Capstan;
let instance: Instance;
beforeAll(async () => {
  capstan = await startCapstan({
    HEARTBEAT_TIMEOUT_MS: '2000',
    SHUTDOWN_GRACE_MS: '1000',
    LEASE_MS: '3000',
  });
  instance = await startInstance(capstan, {
    name: 'work',
    cost_model: { type: 'per_call', rate_usd: 0.5 },
  });
});
afterAll(async () => {
  await instance?.stop();
  await capstan?.stop();
});

test('worker killed -9 in a batch: what had ended is kept, what was under way is sent again when its lease is over', async () => {
  instance.handle = (exec, response) => void (exec.input.id === 'b' || echo(exec, response));
  const steps = ['a', 'b', 'c'].map((id, at, ids) => ({
    id,
    capability: 'work',
    dispatch: 'inline',
    input: { id, before: at === 0 ? null : `{{ steps.${ids[at - 1]}.output.id }}` },
  }));
  const { run_id } = await capstan.submit(steps);
  const lost = await waitFor('the call to arrive', () =>
    instance.execs.find(({ input }) => input.id === 'b'),
  );
  await capstan.killWorker('SIGKILL');
  await waitFor('the connection to close', () => lost.closed);
  instance.handle = echo;
  await capstan.startWorker();
  const run = await capstan.ended(run_id, 60_000);
  expect(run).toMatchObject({ state: 'succeeded', output: { c: { before: 'b' } }, cost_usd: 2 });
  expect(instance.execs.map(({ input }) => input.id)).toEqual(['a', 'b', 'b', 'c']);
  const { body } = await capstan.request<StepDetail>('GET', `/v1/runs/${run_id}/steps/b`);
  expect(body.attempts).toMatchObject([{ state: 'lost', certainty: 'estimated' }, { state: 'settled' }]);
  const keys = instance.execs.map(({ headers }) => headers['idempotency-key']);
  expect(keys[1]).toBe(keys[2]);
}, 90_000);
