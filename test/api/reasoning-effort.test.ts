/** How long a model thinks reaches wrapped models from every protocol, if their file lists efforts. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { type ModelServer, startModelServer } from '../support/model-server.ts';
import { createServedModels } from '../support/served-models.ts';

let api: TestApi;
let provider: ModelServer;
let models: ReturnType<typeof createServedModels>;

beforeAll(async () => {
  [api, provider] = await Promise.all([startTestApi(), startModelServer()]);
  models = createServedModels(api, provider);
  const reasoning_effort = ['low', 'medium', 'high'];
  await models.start('model.thinks', { part: { reasoning_effort, protocols: [] } });
  await models.start('model.plain', { part: { protocols: [] } });
  await models.start('model.claude', { kind: 'anthropic', part: { reasoning_effort, protocols: [] } });
});
beforeEach(() => provider.answer(() => ({ text: 'Hello' })));
afterAll(async () => {
  await models.stop();
  await Promise.all([provider.close(), api.close()]);
});

const messages = [{ role: 'user', content: 'Hi' }];

describe.each<[path: string, field: string, request: object, effort: string]>([
  ['/openai/v1/chat/completions', 'reasoning_effort', { messages, reasoning_effort: 'minimal' }, 'low'],
  ['/openai/v1/chat/completions', 'reasoning.effort', { messages, reasoning: { effort: 'xhigh' } }, 'high'],
  [
    '/openai/v1/responses',
    'reasoning.effort',
    { input: 'Hi', store: false, reasoning: { effort: 'medium' } },
    'medium',
  ],
  [
    '/anthropic/v1/messages',
    'output_config.effort',
    { messages, max_tokens: 2_000, thinking: { type: 'adaptive' }, output_config: { effort: 'high' } },
    'high',
  ],
  [
    '/anthropic/v1/messages',
    'thinking',
    { messages, max_tokens: 2_000, thinking: { type: 'enabled', budget_tokens: 1_024 } },
    'medium',
  ],
])('%s with %s', (path, field, request, effort) => {
  const ask = (model: string, headers: Record<string, string> = {}) =>
    api.call(path, { body: { model, ...request }, headers });
  const strict = { 'x-capstan-strict': 'true' };

  test.each<[model: string, sent: object]>([
    ['thinks', { reasoning_effort: effort }],
    ['claude', { thinking: { type: 'adaptive' }, output_config: { effort } }],
  ])('reaches model.%s', async (model, sent) => {
    for (const headers of [{}, strict]) {
      const answer = await ask(model, headers);
      expect([answer.status, answer.headers.get('x-capstan-dropped')]).toEqual([200, null]);
      expect(provider.requests.at(-1)?.body).toMatchObject(sent);
    }
  });

  test('is left out, and named, for a model that does not take it', async () => {
    const answer = await ask('plain');
    expect([answer.status, answer.headers.get('x-capstan-dropped')]).toEqual([200, field]);
    expect(JSON.stringify(provider.requests.at(-1)?.body)).not.toMatch(/effort|thinking/);
    const refused = await ask('plain', strict);
    expect([refused.status, await refused.json()]).toMatchObject([422, { error: { param: field } }]);
  });
});
