/** Direct calls, and calls in OpenAI's form, that take the answer of an equal call. */

import type { DecisionDetail, ExecAnswer } from '@capstan/core/contracts/decision';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { purgeCachedAnswers } from '../../src/db/attempt/cached-answer.ts';
import { noMaintenance, readJson, startTestApi, type TestApi } from '../support/api.ts';
import { execOn, registerInstance } from '../support/direct-calls.ts';
import { answer, type Instance } from '../support/fleet.ts';
import { type ModelServer, startModelServer } from '../support/model-server.ts';
import { createServedModels } from '../support/served-models.ts';
import { waitFor } from '../support/wait.ts';
import { priceAt } from '../support/wrapped-models.ts';

let api: TestApi;
let provider: ModelServer;
let models: ReturnType<typeof createServedModels>;
let double: Instance;

const paid = { cost_model: { type: 'per_call', rate_usd: 0.25 } };

beforeAll(async () => {
  [api, provider] = await Promise.all([
    startTestApi(noMaintenance), // it would delete old answers before the test does
    startModelServer(),
  ]);
  models = createServedModels(api, provider);
  await models.start('model.fast', priceAt(0.1, [1, 2]));
  double = await registerInstance(api, { name: 'double', deterministic: true, ...paid });
  await specKnown('double');
});
beforeEach(async () => {
  await api.db('cached_answer').del();
  double.execs.length = 0;
  double.handle = ({ input }, response) =>
    answer(response, 200, { ok: true, output: { twice: Number(input.n) * 2 } });
  provider.answer(() => ({ text: 'Hello', usage: [1_000, 500] }));
});
afterAll(async () => {
  await models.stop();
  await Promise.all([provider.close(), api.close()]);
});

async function exec(name: string, body: object, headers: Record<string, string> = {}) {
  const done = await execOn(api, name, { body, headers });
  return { ...done, cache: done.headers.get('x-capstan-cache'), routing: (done.body as ExecAnswer).routing };
}

/** The router learns the spec of a new instance after its registration; without a spec nothing is cached. */
async function specKnown(name: string): Promise<void> {
  const body = { input: { n: 0 }, cache: { ttl_seconds: 60, insist: true } };
  await waitFor('its spec to be known', async () => (await exec(name, body)).cache === 'hit');
}

async function savedToday(): Promise<number> {
  return (await readJson<{ today_saved_usd: number }>(api.call('/v1/costs')))[1].today_saved_usd;
}

const cache = { ttl_seconds: 60 };

describe('a large answer', () => {
  test.each([300_000, 262_144])(
    'of %i characters is not cached, and a header gives the reason',
    async (length) => {
      double.handle = (_, response) =>
        answer(response, 200, { ok: true, output: { text: 'x'.repeat(length) } });
      for (let times = 1; times <= 2; times++) {
        const { status, cache: word, headers } = await exec('double', { input: { n: 1 }, cache });
        expect([status, word]).toEqual([200, 'miss']);
        expect(headers.get('x-capstan-not-kept')).toMatch(
          /^the answer has \d+ bytes, and at most 262144 are cached$/,
        );
      }
      expect(double.execs).toHaveLength(2);
      expect(await api.db('cached_answer')).toEqual([]);
    },
  );

  test('of a model carries the reason in the forms of other protocols', async () => {
    provider.answer(() => ({ text: 'x'.repeat(300_000), usage: [1_000, 500] }));
    const body = { model: 'model.fast', messages: [{ role: 'user', content: 'hi' }] };
    const headers = { 'x-capstan-cache': '60' };
    const { status, headers: told } = await api.call('/openai/v1/chat/completions', { body, headers });
    expect([status, told.get('x-capstan-cache')]).toEqual([200, 'miss']);
    expect(told.get('x-capstan-not-kept')).toContain('at most 262144 are cached');
  });
});

describe('a direct call', () => {
  test('takes the answer of an equal one, which costs nothing, is explained, and counts as saved', async () => {
    const before = await savedToday();
    const first = await exec('double', { input: { n: 21, m: 1 }, cache });
    expect([first.cache, first.routing.settled_usd, first.routing.cached]).toEqual(['miss', 0.25, undefined]);
    const second = await exec('double', { input: { m: 1, n: 21 }, cache });
    expect([second.status, second.cache, second.body.output]).toEqual([200, 'hit', { twice: 42 }]);
    expect(second.routing).toMatchObject({
      chosen: null,
      settled_usd: 0,
      cached: { decision_id: first.routing.decision_id, saved_usd: 0.25 },
    });
    expect(second.routing.reason).toContain(first.routing.decision_id);
    expect(double.execs).toHaveLength(1);
    expect((await savedToday()) - before).toBeCloseTo(0.25, 9);
    const [status, detail] = await readJson<DecisionDetail>(
      api.call(`/v1/decisions/${second.routing.decision_id}`),
    );
    expect([status, detail.cached?.decision_id, detail.settled_usd]).toEqual([
      200,
      first.routing.decision_id,
      0,
    ]);
  });

  test.each([
    ['another input', { input: { n: 2 }, cache }],
    ['other tags', { input: { n: 1 }, cache, tags: ['gpu'] }],
    ['no wish for the cache', { input: { n: 1 } }],
  ])('with %s is made', async (_, body) => {
    await registerInstance(api, { name: 'tagged', deterministic: true, tags: ['gpu'] });
    await specKnown('tagged');
    await exec('tagged', { input: { n: 1 }, cache });
    const other = await exec('tagged', body);
    expect([other.status, other.cache === 'hit']).toEqual([200, false]);
  });

  test('of another project is made', async () => {
    await exec('double', { input: { n: 5 }, cache });
    const { apiKey } = await api.createProject('other');
    const other = await exec('double', { input: { n: 5 }, cache }, { authorization: `Bearer ${apiKey}` });
    expect([other.status, other.cache]).toEqual([200, 'miss']);
    await api.call('/v1/cache', { method: 'DELETE' });
    const mine = await exec('double', { input: { n: 5 }, cache });
    const again = await exec('double', { input: { n: 5 }, cache }, { authorization: `Bearer ${apiKey}` });
    expect([mine.cache, again.cache]).toEqual(['miss', 'hit']);
  });

  test('takes no answer that is older than it allows, and expired ones are deleted', async () => {
    await exec('double', { input: { n: 6 }, cache });
    await api.db('cached_answer').update({ stored_at: new Date(Date.now() - 30_000) });
    expect((await exec('double', { input: { n: 6 }, cache: { ttl_seconds: 20 } })).cache).toBe('miss');
    await api.db('cached_answer').update({ expires_at: new Date(Date.now() - 1_000) });
    expect((await exec('double', { input: { n: 6 }, cache })).cache).toBe('miss');
    await api.db('cached_answer').update({ expires_at: new Date(Date.now() - 1_000) });
    expect(await purgeCachedAnswers(api.db)).toBe(1);
  });

  test('of a capability that is not deterministic is cached only if the caller insists', async () => {
    const dice = await registerInstance(api, { name: 'dice' });
    await specKnown('dice');
    dice.execs.length = 0;
    for (const _ of [1, 2]) expect((await exec('dice', { input: {}, cache })).cache).toBe('miss');
    const insisting = { input: {}, cache: { ...cache, insist: true } };
    expect((await exec('dice', insisting)).cache).toBe('miss');
    expect((await exec('dice', insisting)).cache).toBe('hit');
    expect(dice.execs).toHaveLength(3);
  });

  test('that fails, writes a file or answers with one is not cached', async () => {
    double.handle = (_, response) => answer(response, 422, { ok: false, error: 'no' });
    for (const _ of [1, 2]) expect((await exec('double', { input: { n: 7 }, cache })).status).toBe(422);
    const [, { job_id }] = await readJson<{ job_id: string }>(api.call('/v1/jobs', { body: { job: {} } }));
    double.handle = (_, response) =>
      answer(response, 200, { ok: true, output: { file: `media://${job_id}/a` } });
    for (const _ of [1, 2]) expect((await exec('double', { input: { n: 8 }, cache })).cache).toBe('miss');
    const writing = { input: { output_path: `media://${job_id}/b` }, cache };
    for (const _ of [1, 2]) expect((await exec('double', writing)).cache).toBe('miss');
    expect(await api.db('cached_answer')).toEqual([]);
  });

  test('keeps its answer under an Idempotency-Key, also one from the cache', async () => {
    await exec('double', { input: { n: 9 }, cache });
    const headers = { 'idempotency-key': 'once' };
    const first = await exec('double', { input: { n: 9 }, cache }, headers);
    await api.call('/v1/cache?capability=double', { method: 'DELETE' });
    const again = await exec('double', { input: { n: 9 }, cache }, headers);
    expect([first.cache, again.headers.get('idempotent-replayed')]).toEqual(['hit', 'true']);
    expect(again.body).toEqual(first.body);
    expect(double.execs).toHaveLength(1);
  });
});

describe("a call in OpenAI's form", () => {
  const ask = (more: object = {}, ttl = '3600') =>
    new OpenAI({
      baseURL: `${api.url}/openai/v1`,
      apiKey: api.apiKey,
      maxRetries: 0,
    }).chat.completions.create(
      { model: 'fast', messages: [{ role: 'user', content: 'Hi' }], ...more },
      { headers: { 'X-Capstan-Cache': ttl } },
    );

  test('takes an answer with its usage, at no cost, and as a stream of one part', async () => {
    const before = provider.requests.length;
    const first = await ask().withResponse();
    const { data, response } = await ask().withResponse();
    const header = (of: Response, name: string) => of.headers.get(`x-capstan-${name}`);
    expect([header(first.response, 'cache'), header(first.response, 'cost-usd')]).toEqual(['miss', '0.002']);
    expect([header(response, 'cache'), header(response, 'cost-usd')]).toEqual(['hit', '0']);
    const completion = data as OpenAI.ChatCompletion;
    expect(completion.choices[0]?.message.content).toBe('Hello');
    expect(completion.usage).toMatchObject({ total_tokens: 1_500, cost_usd: 0 });
    const stream = (await ask({ stream: true })) as unknown as AsyncIterable<OpenAI.ChatCompletionChunk>;
    const parts: string[] = [];
    for await (const { choices } of stream) parts.push(choices[0]?.delta.content ?? '');
    expect(parts.filter((part) => part !== '')).toEqual(['Hello']);
    expect(provider.requests.length - before).toBe(1);
    await ask({ temperature: 1 });
    expect(provider.requests.length - before).toBe(2);
  });

  test('with a time that is none is refused', async () => {
    await expect(ask({}, 'long')).rejects.toMatchObject({
      status: 422,
      param: expect.stringContaining('cache'),
    });
  });
});
