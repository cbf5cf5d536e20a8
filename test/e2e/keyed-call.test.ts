import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ExecAnswer } from '../../src/contracts/decision.ts';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { echo, startInstance } from '../support/fleet.ts';
import { waitFor } from '../support/wait.ts';

let capstan: Capstan;
beforeAll(async () => {
  capstan = await startCapstan({ LEASE_MS: '1000' });
});
afterAll(() => capstan?.stop());

test('the same key makes the call again after the server died at work, with the same key for the instance', async () => {
  const instance = await startInstance(capstan, { name: 'render' });
  instance.handle = () => undefined;
  const ask = () =>
    capstan.request<ExecAnswer>(
      ...(['POST', '/v1/capabilities/render/exec', { input: { n: 1 } }, { 'idempotency-key': 'k' }] as const),
    );
  const cut = expect(ask()).rejects.toThrow();
  await waitFor('the call to arrive', () => instance.execs.length === 1);
  await capstan.killServer('SIGKILL');
  await cut;

  instance.handle = echo;
  await capstan.startServer();
  expect((await ask()).status).toBe(409);
  const end = await waitFor('the key to be taken over', async () => {
    const seen = await ask();
    return seen.status === 200 ? seen : undefined;
  });
  expect(end.body.output).toEqual({ n: 1 });
  expect(instance.execs.map(({ headers }) => [headers['idempotency-key'], headers['x-attempt']])).toEqual([
    [expect.any(String), '1'],
    [instance.execs[0]?.headers['idempotency-key'], '2'],
  ]);
  await instance.stop();
});
