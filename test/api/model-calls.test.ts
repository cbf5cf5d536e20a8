/** A model level behind the real router: what it reports is what is booked, and its errors go where they belong. */

import type { RunningInstance } from '@capstan/capability';
import type { Decision } from '@capstan/core/contracts/decision';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { serve } from '../../packages/capability/test/support/capabilities.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { execOn } from '../support/direct-calls.ts';
import { type ModelServer, startModelServer } from '../support/model-server.ts';
import { waitFor } from '../support/wait.ts';
import { defineModel, type ModelFile, priceAt } from '../support/wrapped-models.ts';

let api: TestApi;
let provider: ModelServer;
const instances: RunningInstance[] = [];

beforeAll(async () => {
  [api, provider] = await Promise.all([startTestApi(), startModelServer()]);
});
afterAll(async () => {
  await Promise.all(instances.map((instance) => instance.stop()));
  await Promise.all([provider.close(), api.close()]);
});

async function start(name: string, more: Partial<ModelFile>): Promise<RunningInstance> {
  const capability = defineModel({ name, url: provider.url, ...more });
  const instance = await serve(capability, { ROUTER_URL: api.url, ROUTER_TOKEN: api.apiKey });
  instances.push(instance);
  await waitFor('the router to know it', async () => {
    const answer = await api.call('/v1/route', { body: { capability: name } });
    const { candidates = [] } = (await answer.json()) as Partial<Decision>;
    return candidates.some(({ endpoint }) => endpoint === instance.endpoint);
  });
  return instance;
}

function ask(level: string) {
  return execOn(api, level, { body: { input: { messages: [{ role: 'user', content: 'a' }] } } });
}

test('a call reserves what its input may cost, costs what its tokens cost, and at most the rate', async () => {
  await start('model.top', priceAt(0.1, [1, 2]));
  provider.answer(() => ({ text: 'x', usage: [1_000, 500] }));
  expect((await ask('model.top')).body).toMatchObject({
    output: { text: 'x', cost_usd: 0.002 },
    routing: { reserved_usd: 0.008_225, settled_usd: 0.002 },
  });
  provider.answer(() => ({ text: 'x', usage: [1_000_000, 500] }));
  expect((await ask('model.top')).body.routing).toMatchObject({ settled_usd: 0.1 });
});

test('an instance with a wrong key is passed over for one that works', async () => {
  await start('model.fast', { part: { model: 'locked' } });
  provider.answer(({ body }) => (body.model === 'locked' ? { status: 401 } : { text: 'works' }));
  const { status, body } = await ask('model.fast');
  expect([status, body.detail]).toEqual([502, expect.stringMatching(/was answered 401/)]);
  const paid = await start('model.fast', priceAt(0.01));
  expect((await ask('model.fast')).body).toMatchObject({
    output: { text: 'works' },
    routing: { chosen: paid.endpoint },
  });
});
