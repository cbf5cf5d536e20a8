/** A revoked key stops, also where its request came in before. How soon: revocation.test.ts. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { execOn, registerInstance } from '../support/direct-calls.ts';
import { anInstance } from '../support/factories.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({}, { keyTrustMs: 0 });
  await anInstance(api.db, { name: 'b' });
});
afterAll(() => api.close());

async function aKey(): Promise<{ headers: Record<string, string>; revoke: () => Promise<unknown> }> {
  const body = { name: 'short', scopes: ['run:read', 'capability:call'], projects: [api.projectId] };
  const made = (await (await api.call('/v1/keys', { body })).json()) as { key_id: string; key: string };
  return {
    headers: { authorization: `Bearer ${made.key}` },
    revoke: () => api.call(`/v1/keys/${made.key_id}`, { method: 'DELETE' }),
  };
}

test('a stream of events', async () => {
  const definition = { pipeline: 'p', version: '1', steps: [{ id: 'a', capability: 'b' }] };
  const { run_id } = (await (await api.call('/v1/runs', { body: { definition } })).json()) as {
    run_id: string;
  };
  const { headers, revoke } = await aKey();
  const stream = (path: Record<string, string>) =>
    api.call(`/v1/runs/${run_id}/events`, { headers: { accept: 'text/event-stream', ...path } });
  const [theirs, others] = [await stream(headers), await stream({})];
  const ended = theirs.text().then(
    () => 'ended',
    () => 'cut',
  );
  await revoke();
  expect(await ended).toBe('cut');
  const { value } = (await others.body?.getReader().read()) ?? {};
  expect(Buffer.from(value ?? []).toString()).toContain(': open');
  await others.body?.cancel().catch(() => undefined);
});

test('a call that takes long', async () => {
  const instance = await registerInstance(api, { name: 'hangs' });
  instance.handle = () => undefined;
  const { headers, revoke } = await aKey();
  const call = execOn(api, 'hangs', { headers }).then(
    () => 'answered',
    () => 'cut',
  );
  await waitFor('the call to arrive', () => instance.execs.length === 1);
  await revoke();
  expect(await call).toBe('cut');
  await instance.stop();
});
