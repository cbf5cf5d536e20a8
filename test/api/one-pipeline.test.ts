/** A key for one pipeline: it starts runs of it, and does nothing else. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectOverHttp, useTool } from '../support/agents.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { registerInstance } from '../support/direct-calls.ts';
import type { Instance } from '../support/fleet.ts';

let api: TestApi;
let instance: Instance;
let key: string;

const definitionOf = (pipeline: string) => ({
  pipeline,
  version: '1',
  steps: [{ id: 'cut', capability: 'cut', input: {} }],
});

beforeAll(async () => {
  api = await startTestApi();
  instance = await registerInstance(api, { name: 'cut' });
  for (const name of ['nightly', 'nightly2', 'other']) {
    const body = { ...definitionOf(name), budget_ceiling_usd: 0.1 };
    expect((await api.call('/v1/pipelines', { body })).status).toBe(201);
  }
  key = await api.createKey({ scopes: ['run:write:nightly'] });
});
afterAll(async () => {
  await instance.stop();
  await api.close();
});

function call(path: string, body?: object) {
  return api.call(path, { body, headers: { authorization: `Bearer ${key}` } });
}

test.each([
  ['/v1/runs', { pipeline: 'nightly', job: {} }, 202],
  ['/v1/runs', { pipeline: 'nightly2', job: {} }, 403],
  ['/v1/runs', { pipeline: 'other', job: {} }, 403],
  ['/v1/runs', { definition: definitionOf('nightly'), job: {} }, 403],
  ['/v1/runs/bulk/cancel', { filter: { pipeline: 'nightly' } }, 403],
  ['/v1/jobs', { body: {} }, 403],
  ['/v1/schedules', {}, 403],
  ['/v1/runs', undefined, 403],
  ['/v1/pipelines', undefined, 403],
  ['/v1/capabilities/cut/exec', { input: {} }, 403],
] as const)('%s with %j is answered %i', async (path, body, status) => {
  expect((await call(path, body)).status).toBe(status);
});

test.each([
  [undefined, 202, 0.1],
  [0.05, 202, 0.05],
  [0.1, 202, 0.1],
  [50, 403, 'the key may start nightly with its budget of $0.10 or less; asked: $50.00'],
])('with a budget of %j it is answered %i', async (budget_ceiling_usd, status, said) => {
  const request = { pipeline: 'nightly', job: {}, budget_ceiling_usd };
  const [alone, many] = await Promise.all([
    call('/v1/runs', request),
    call('/v1/runs/bulk', { runs: [request] }),
  ]);
  const body = (await alone.json()) as { detail?: string; budget_ceiling_usd?: number };
  expect([alone.status, body.detail ?? body.budget_ceiling_usd]).toEqual([status, said]);
  expect(((await many.json()) as { items: { status: number }[] }).items).toMatchObject([{ status }]);
});

test('the limit of an agent lowers the budget of the pipeline, and never raises it', async () => {
  const agent = await api.createKey({ scopes: ['run:write', 'run:read'] });
  const given = async (ceilingUsd: string) => {
    const client = await connectOverHttp({ url: api.url, key: agent }, 'modern', {
      'x-capstan-ceiling-usd': ceilingUsd,
    });
    const started = { pipeline: 'nightly', job: {}, wait_s: 0 };
    const { content } = await useTool<{ run_id: string }>(client, 'start_run', started);
    await client.close();
    return (await (await api.call(`/v1/runs/${content.run_id}`)).json()) as { budget_ceiling_usd?: number };
  };
  expect((await given('0.03')).budget_ceiling_usd).toBe(0.03);
  expect((await given('5')).budget_ceiling_usd).toBe(0.1);
});

test('in a bulk request, runs of other pipelines are refused one by one', async () => {
  const runs = ['nightly', 'other'].map((pipeline) => ({ pipeline, job: {} }));
  const answer = (await (await call('/v1/runs/bulk', { runs })).json()) as { items: { status: number }[] };
  expect(answer.items.map(({ status }) => status)).toEqual([202, 403]);
});

test('an agent with it sees the tool of that pipeline alone', async () => {
  const client = await connectOverHttp({ url: api.url, key });
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['run_nightly']);
  await client.close();
});

test('a right to a prefix covers the names that begin with it', async () => {
  const prefixed = await api.createKey({ scopes: ['run:write:night*'] });
  const headers = { authorization: `Bearer ${prefixed}` };
  const statuses = ['nightly2', 'other'].map(async (pipeline) => {
    return (await api.call('/v1/runs', { body: { pipeline, job: {} }, headers })).status;
  });
  expect(await Promise.all(statuses)).toEqual([202, 403]);
});
