import type { CapabilityDetail, Instance as Listed } from '@capstan/core/contracts/capability';
import type { Run } from '@capstan/core/contracts/run';
import { beforeAll, expect, test } from 'vitest';
import { answer, echo, type Handler, startInstance } from '../support/fleet.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

let capstan: SharedCapstan;

beforeAll(async () => {
  capstan = await shareCapstan();
});

function change(name: string, act: string, endpoint: string) {
  return capstan.request<Listed>('POST', `/v1/capabilities/${name}/${act}`, { endpoint });
}

async function stateOf(name: string, endpoint: string): Promise<string | undefined> {
  const { body } = await capstan.request<CapabilityDetail>('GET', `/v1/capabilities/${name}`);
  return body.instances.find((one) => one.endpoint === endpoint)?.state;
}

/** Answers on command. */
function onCommand(): { readonly handle: Handler; readonly go: () => void } {
  const open: (() => void)[] = [];
  return {
    handle: (exec, response) => void open.push(() => answer(response, 200, { ok: true, output: exec.input })),
    go: () => {
      for (const end of open.splice(0)) end();
    },
  };
}

test('a drained instance ends its open call, and new calls go elsewhere until it is undrained', async () => {
  const name = 'drain-open';
  const local = await startInstance(capstan, { name });
  const held = onCommand();
  local.handle = held.handle;
  const first = await capstan.submit([{ id: 'a', capability: name, input: {} }]);
  await waitFor('the call to arrive', () => local.execs.length === 1);
  const other = await startInstance(capstan, { name, tags: ['elsewhere'] });

  expect((await change(name, 'drain', local.endpoint)).body).toMatchObject({
    state: 'draining',
    in_flight: 1,
  });
  const second = await capstan.submit([{ id: 'a', capability: name, input: {} }]);
  expect(await capstan.ended(second.run_id)).toMatchObject({
    state: 'succeeded',
    steps: [{ endpoint: other.endpoint }],
  });
  held.go();
  expect(await capstan.ended(first.run_id)).toMatchObject({
    state: 'succeeded',
    steps: [{ attempts: 1, endpoint: local.endpoint }],
  });

  await change(name, 'drain', other.endpoint);
  const third = await capstan.submit([{ id: 'a', capability: name, input: {} }]);
  await waitFor('the step to wait for an instance', async () => {
    const { body } = await capstan.request<Run>('GET', `/v1/runs/${third.run_id}`);
    return body.awaiting?.includes('capability');
  });
  expect([local.execs.length, other.execs.length]).toEqual([1, 1]);
  await change(name, 'undrain', other.endpoint);
  expect(await capstan.ended(third.run_id)).toMatchObject({ steps: [{ endpoint: other.endpoint }] });
  await Promise.all([local.stop(), other.stop()]);
});

test('an instance is warmed up before it gets calls that another one can take', async () => {
  const name = 'warmed';
  const submit = async () => (await capstan.submit([{ id: 'a', capability: name, input: {} }])).run_id;
  const paid = await startInstance(capstan, { name, cost_model: { type: 'per_call', rate_usd: 0.01 } });
  await capstan.ended(await submit()); // its router knows the one that can take calls
  const held = onCommand();
  const warm_up = { input: { warm: true } };
  const cold = await startInstance(capstan, { name, warm_up, handle: held.handle });
  await waitFor('the warm-up', () => cold.execs.length === 1);
  expect(await stateOf(name, cold.endpoint)).toBe('warming');
  expect(await capstan.ended(await submit())).toMatchObject({ steps: [{ endpoint: paid.endpoint }] });
  held.go();
  await waitFor('it to be warm', async () => (await stateOf(name, cold.endpoint)) === 'up');
  expect(cold.execs.map(({ input }) => input)).toEqual([{ warm: true }]);
  cold.handle = echo;
  // A router learns of it by its next poll.
  await waitFor('a call on the warm instance', async () => {
    return (await capstan.ended(await submit())).steps[0]?.endpoint === cold.endpoint;
  });
  await Promise.all([cold.stop(), paid.stop()]);
});
