/** The names that a key may call, and the other names that a project gives to models. */

import type { AuditEntry, KeyScope } from '@capstan/core/contracts/access';
import { mostAliases } from '@capstan/core/contracts/model-alias';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { execOn } from '../support/direct-calls.ts';
import { type ModelServer, startModelServer } from '../support/model-server.ts';
import { createServedModels } from '../support/served-models.ts';

let api: TestApi;
let provider: ModelServer;
let models: ReturnType<typeof createServedModels>;

beforeAll(async () => {
  [api, provider] = await Promise.all([startTestApi(), startModelServer()]);
  models = createServedModels(api, provider);
  for (const name of ['model.fast', 'model.capable', 'embed.small']) await models.start(name);
});
beforeEach(() =>
  provider.answer(({ path }) =>
    path.endsWith('/embeddings') ? { vectors: () => [1] } : { text: 'Hello', usage: [10, 5] },
  ),
);
afterAll(async () => {
  await models.stop();
  await Promise.all([provider.close(), api.close()]);
});

const hi = [{ role: 'user', content: 'Hi' }] as const satisfies OpenAI.ChatCompletionMessageParam[];
const input = { messages: hi };

function clientOf(apiKey: string): OpenAI {
  return new OpenAI({ baseURL: `${api.url}/openai/v1`, apiKey, maxRetries: 0 });
}

async function askedAs(apiKey: string, model: string, more: object = {}) {
  const before = provider.requests.length;
  return clientOf(apiKey)
    .chat.completions.create({ model, messages: hi, ...more })
    .then(
      () => ({ asked: provider.requests.length - before }),
      ({ status, code, message }: InstanceType<typeof OpenAI.APIError>) => ({ status, code, message }),
    );
}

async function listedTo(apiKey: string): Promise<string[]> {
  return (await clientOf(apiKey).models.list()).data.map(({ id }) => id);
}

function setAlias(name: string, capability: string, headers = {}) {
  return readJson<Record<string, unknown>>(
    api.call(`/v1/aliases/${name}`, { method: 'PUT', headers, body: { capability } }),
  );
}

async function removeAlias(name: string): Promise<number> {
  return (await api.call(`/v1/aliases/${name}`, { method: 'DELETE' })).status;
}

describe('a key that may call some names', () => {
  const limited = (...scopes: KeyScope[]) => api.createKey({ scopes, projects: [api.projectId] });

  test('calls these, by name and by prefix, and no other one by any route', async () => {
    const key = await limited('capability:call:model.fast', 'capability:call:embed.*');
    const headers = { authorization: `Bearer ${key}` };
    expect((await execOn(api, 'model.fast', { body: { input }, headers })).status).toBe(200);
    expect(await askedAs(key, 'fast')).toEqual({ asked: 1 });
    expect((await clientOf(key).embeddings.create({ model: 'small', input: 'a' })).data).toHaveLength(1);
    const before = provider.requests.length;
    const direct = await execOn(api, 'model.capable', { body: { input }, headers });
    const detail = expect.stringMatching(
      /may not call model\.capable, only by capability:call:model\.fast, capability:call:embed\.\*$/,
    );
    expect([direct.status, direct.body]).toMatchObject([403, { code: 'forbidden', detail }]);
    for (const more of [{}, { stream: true }]) {
      expect(await askedAs(key, 'capable', more)).toMatchObject({
        status: 403,
        code: 'forbidden',
        message: expect.stringContaining('only by capability:call:model.fast'),
      });
    }
    expect(provider.requests.length).toBe(before);
  });

  test('sees only these, also as suggestions', async () => {
    const key = await limited('capability:call:model.f*', 'capability:read');
    expect(await listedTo(key)).toEqual(['model.fast']);
    await expect(clientOf(key).models.retrieve('capable')).rejects.toBeInstanceOf(OpenAI.NotFoundError);
    const { message } = (await askedAs(key, 'capabl')) as { message: string };
    expect(message).toContain('model.fast');
    expect(message).not.toContain('model.capable');
    const reader = await limited('capability:read');
    expect(await listedTo(reader)).toEqual(['embed.small', 'model.capable', 'model.fast']);
  });

  test('is not led around its names by an alias', async () => {
    expect((await setAlias('model-of-fast', 'model.capable'))[0]).toBe(200);
    const key = await limited('capability:call:model.fast', 'capability:read');
    expect(await askedAs(key, 'model-of-fast')).toMatchObject({
      status: 403,
      message: expect.stringContaining('may not call model.capable'),
    });
    expect(await listedTo(key)).toEqual(['model.fast']);
    await removeAlias('model-of-fast');
  });

  test('calls any name with the scope for all', async () => {
    expect(await askedAs(await limited('capability:call:model.fast', 'capability:call'), 'capable')).toEqual({
      asked: 1,
    });
  });
});

describe('an alias', () => {
  test('is a name for chat, streams and embeddings, is listed, and goes before a short name', async () => {
    const set = await setAlias('openai/gpt-4o', 'model.capable');
    expect(set).toEqual([
      200,
      {
        name: 'openai/gpt-4o',
        capability: 'model.capable',
        set_by: `key_${api.apiKey.split('_')[2]}`,
        updated_at: expect.any(String),
      },
    ]);
    await setAlias('text-embedding-3', 'embed.small');
    await setAlias('fast', 'model.capable');
    const client = clientOf(api.apiKey);
    const { data, response } = await client.chat.completions
      .create({ model: 'openai/gpt-4o', messages: hi })
      .withResponse();
    expect(data.choices[0]?.message.content).toBe('Hello');
    const decisionOf = async (id: string | null) =>
      (await readJson<{ capability: string }>(api.call(`/v1/decisions/${id}`)))[1].capability;
    expect(await decisionOf(response.headers.get('x-capstan-decision'))).toBe('model.capable');
    const short = await client.chat.completions.create({ model: 'fast', messages: hi }).asResponse();
    expect(await decisionOf(short.headers.get('x-capstan-decision'))).toBe('model.capable');
    const full = await client.chat.completions.create({ model: 'model.fast', messages: hi }).asResponse();
    expect(await decisionOf(full.headers.get('x-capstan-decision'))).toBe('model.fast');
    expect(
      (await client.embeddings.create({ model: 'text-embedding-3', input: 'a' })).data[0]?.embedding,
    ).toEqual([1]);
    expect(await listedTo(api.apiKey)).toEqual(expect.arrayContaining(['openai/gpt-4o', 'text-embedding-3']));
    expect(await client.models.retrieve('openai/gpt-4o')).toMatchObject({
      id: 'openai/gpt-4o',
      capability: 'model.capable',
      instances_up: 1,
    });
    for (const name of ['openai/gpt-4o', 'text-embedding-3', 'fast'])
      expect(await removeAlias(name)).toBe(204);
    expect(await removeAlias('fast')).toBe(404);
    expect(await askedAs(api.apiKey, 'openai/gpt-4o')).toMatchObject({
      status: 404,
      code: 'model_not_found',
    });
  });

  test('belongs to its project, and to its administrators', async () => {
    const other = await api.createProject('other');
    await setAlias('gpt-4o', 'model.fast');
    expect(await askedAs(other.apiKey, 'gpt-4o')).toMatchObject({ status: 404, code: 'model_not_found' });
    const caller = await api.createKey({
      scopes: ['capability:call', 'capability:read'],
      projects: [api.projectId],
    });
    const headers = { authorization: `Bearer ${caller}` };
    expect(await setAlias('gpt-4o', 'model.capable', headers)).toMatchObject([403, { code: 'forbidden' }]);
    expect(await readJson(api.call('/v1/aliases', { headers }))).toMatchObject([
      200,
      { items: [{ name: 'gpt-4o', capability: 'model.fast' }] },
    ]);
    const [, { items }] = await readJson<{ items: AuditEntry[] }>(api.call('/v1/audit?subject=gpt-4o'));
    expect(items.map(({ action, data }) => [action, data])).toEqual([
      ['alias.set', { capability: 'model.fast' }],
    ]);
    await removeAlias('gpt-4o');
  });

  test('is suggested for a name that is nearly it', async () => {
    await setAlias('gpt-4o', 'model.fast');
    const { message } = (await askedAs(api.apiKey, 'gpt-4p')) as { message: string };
    expect(message).toContain('did you mean "gpt-4o"?');
    await removeAlias('gpt-4o');
  });

  test.each([
    ['model.mine', 'model.fast', '/path/name'],
    ['a//b', 'model.fast', '/path/name'],
    ['gpt-4o', 'thumbnail', '/capability'],
  ])('%s to %s is refused, with the field', async (name, capability, pointer) => {
    const [status, body] = await setAlias(name, capability);
    expect([status, body]).toMatchObject([422, { errors: [{ pointer }] }]);
  });

  test('leads to a capability that there is, and asks for one of its kind', async () => {
    expect(await setAlias('gpt-4o', 'model.capabel')).toMatchObject([
      404,
      { detail: expect.stringContaining('did you mean "model.capable"?') },
    ]);
    await setAlias('vectors', 'embed.small');
    expect(await askedAs(api.apiKey, 'vectors')).toMatchObject({
      status: 404,
      message: expect.stringContaining('the alias leads to embed.small'),
    });
    await removeAlias('vectors');
  });

  test('costs a call no query while its project is known', async () => {
    await setAlias('gpt-4o', 'model.fast');
    await askedAs(api.apiKey, 'gpt-4o');
    await api.db('model_alias').del(); // behind the back of the process, which still knows it
    expect(await askedAs(api.apiKey, 'gpt-4o')).toEqual({ asked: 1 });
  });

  test('is one of a limited number', async () => {
    const { projectId, apiKey } = await api.createProject('crowded');
    await api.db('instance').update({ shared_with: '"all"' });
    await api.refreshFleet();
    await api.db('model_alias').insert(
      Array.from({ length: mostAliases }, (_, at) => ({
        project_id: projectId,
        name: `a${at}`,
        capability: 'model.fast',
        set_by: 'test',
      })),
    );
    const headers = { authorization: `Bearer ${apiKey}` };
    expect(await setAlias('one-more', 'model.fast', headers)).toMatchObject([
      422,
      { detail: `the project has ${mostAliases} aliases, and no more are allowed` },
    ]);
    expect((await setAlias('a0', 'model.capable', headers))[0]).toBe(200);
  });
});
