/** Calls as people look for them: one list over all capabilities, by payer, model and end, and their contents. */
import type { KeyCreated } from '@capstan/core/contracts/access';
import type { CallContent, CallDetail, CallRecord } from '@capstan/core/contracts/call';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { purgeContents } from '../../src/db/attempt/call-content.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { type ExecOptions, execOn, registerInstance } from '../support/direct-calls.ts';
import { answer, type Handler, type Instance } from '../support/fleet.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
const fleet: Instance[] = [];

const said = {
  text: 'Hello',
  reasoning: 'A greeting is wanted.',
  model: 'small-2',
  usage: {
    input_tokens: 30,
    output_tokens: 12,
    cached_read_tokens: 20,
    cached_write_tokens: 5,
    reasoning_tokens: 4,
  },
};
const messages = [{ role: 'user', content: 'Hi' }];
const cost_model = { type: 'per_call', rate_usd: 0.01 };

async function register(name: string, handle: Handler, more = {}): Promise<Instance> {
  const instance = await registerInstance(api, { name, ...more });
  instance.handle = handle;
  fleet.push(instance);
  return instance;
}

function answers(output: object): Handler {
  return (_, response) => answer(response, 200, { ok: true, output });
}

beforeAll(async () => {
  api = await startTestApi();
  await register('model.free', answers(said));
  await register('model.paid', answers({ ...said, model: 'large-1' }), { cost_model });
  await register('tidy', answers({ done: true }), { deterministic: true });
  await register('broken', (_, response) => answer(response, 422, { error: 'no' }), { cost_model });
});
afterAll(async () => {
  await Promise.all(fleet.map((instance) => instance.stop()));
  await api.close();
});

interface CallPage {
  readonly items: readonly CallRecord[];
  readonly next_cursor: string | null;
}

async function list(search: Readonly<Record<string, string>>, headers = {}): Promise<CallPage> {
  const [status, page] = await readJson<CallPage>(
    api.call(`/v1/calls?${new URLSearchParams(search)}`, { headers }),
  );
  expect([status, page]).toMatchObject([200, { items: expect.any(Array) }]);
  return page;
}

/** Makes a call, and waits until its end is stored. */
async function callOf(
  name: string,
  options: ExecOptions = { body: { input: { messages } } },
): Promise<string> {
  const { body } = await execOn(api, name, options);
  const decision = body.routing ?? (body as unknown as { decision: { decision_id: string } }).decision;
  await ended(decision.decision_id);
  return decision.decision_id;
}

function ended(id: string): Promise<CallDetail> {
  return waitFor(`the end of ${id}`, async () => {
    const [status, call] = await readJson<CallDetail>(api.call(`/v1/calls/${id}`));
    return status === 200 && call.outcome !== 'running' ? call : undefined;
  });
}

async function aKey(scopes: Parameters<TestApi['createKey']>[0]['scopes']) {
  const body = { name: 'test', scopes, projects: [api.projectId] };
  const [, { key, key_id }] = await readJson<KeyCreated>(api.call('/v1/keys', { body }));
  return { headers: { authorization: `Bearer ${key}` }, key_id };
}

const labels = (value: string) => ({ 'x-capstan-labels': value });

describe('a call in the list', () => {
  test.each(['model.free', 'model.paid'])('has its payer, model, tokens and end: %s', async (name) => {
    const { headers, key_id } = await aKey(['capability:call']);
    const marks = { ...headers, 'x-capstan-user': 'anna', ...labels('team=ads,stage=a=b') };
    const id = await callOf(name, { body: { input: { messages } }, headers: marks });
    const { items } = await list({ key: key_id });
    expect(items).toEqual([
      {
        decision_id: id,
        at: expect.any(String),
        capability: name,
        endpoint: expect.stringContaining('http://'),
        outcome: 'succeeded',
        error: null,
        duration_ms: expect.any(Number),
        cost_usd: name === 'model.paid' ? 0.01 : 0,
        certainty: 'exact',
        model: name === 'model.paid' ? 'large-1' : 'small-2',
        tokens: { input: 30, output: 12, cached_read: 20, cached_write: 5, reasoning: 4 },
        key_id,
        user: 'anna',
        labels: { team: 'ads', stage: 'a=b' },
        run_id: null,
        pipeline: null,
        step_id: null,
        item: null,
      },
    ]);
  });

  test('of another capability has no model and no tokens, whatever it answers', async () => {
    const id = await callOf('tidy', { body: { input: {} } });
    expect(await ended(id)).toMatchObject({ model: null, tokens: null, cost_usd: 0 });
  });

  test('that was refused has failed, with its error', async () => {
    const id = await callOf('broken');
    expect(await ended(id)).toMatchObject({
      outcome: 'failed',
      error: { code: 'input_rejected', message: expect.stringContaining('422') },
      reserved_usd: 0.01,
    });
    const [, { items }] = await readJson<{ items: { outcome: string; error: string }[] }>(
      api.call('/v1/decisions?capability=broken'),
    );
    expect(items[0]).toMatchObject({ outcome: 'failed', error: 'input_rejected' });
    expect((await readJson(api.call(`/v1/decisions/${id}`)))[1]).toMatchObject({ outcome: 'failed' });
  });

  test('that took a cached answer names the original, and its key', async () => {
    const { headers, key_id } = await aKey(['capability:call']);
    const body = { input: { messages, seed: 7 }, cache: { ttl_seconds: 60, insist: true } };
    const first = await callOf('model.paid', { body, headers });
    const second = await callOf('model.paid', { body, headers });
    expect(await ended(second)).toMatchObject({
      outcome: 'cached',
      cost_usd: 0,
      saved_usd: 0.01,
      cached_from: first,
      key_id,
    });
  });
});

describe('a filter', () => {
  const made: Record<string, string> = {};
  let key: Awaited<ReturnType<typeof aKey>>;
  beforeAll(async () => {
    key = await aKey(['capability:call']);
    const { headers } = key;
    const input = { messages };
    made.free = await callOf('model.free', {
      body: { input },
      headers: { ...headers, ...labels('team=red') },
    });
    made.paid = await callOf('model.paid', {
      body: { input },
      headers: { ...headers, 'x-capstan-user': 'bo' },
    });
    made.broken = await callOf('broken', { body: { input }, headers });
    made.tidy = await callOf('tidy', { body: { input: {} }, headers });
  });

  test.each([
    [{ capability: 'model.free' }, ['free']],
    [{ model: 'large-1' }, ['paid']],
    [{ label: 'team=red' }, ['free']],
    [{ label: 'team=re' }, []],
    [{ user: 'bo' }, ['paid']],
    [{ user: 'bo', label: 'team=red' }, []],
    [{ outcome: 'failed' }, ['broken']],
    [{ outcome: 'succeeded' }, ['tidy', 'paid', 'free']],
    [{ outcome: 'running' }, []],
    [{ direct: 'true' }, ['tidy', 'broken', 'paid', 'free']],
    [{ direct: 'false' }, []],
    [{ pipeline: 'reel' }, []],
    [{ since: '2999-01-01T00:00:00Z' }, []],
    [{ since: '2020-01-01T00:00:00Z' }, ['tidy', 'broken', 'paid', 'free']],
    [{ until: '2020-01-01T00:00:00Z' }, []],
  ])('selects %j', async (filter, expected) => {
    const { items } = await list({ key: key.key_id, ...filter });
    expect(items.map(({ decision_id }) => decision_id)).toEqual(expected.map((name) => made[name]));
  });

  test('by an instance selects its calls', async () => {
    const [, , tidy] = fleet;
    const { items } = await list({ endpoint: String(tidy?.endpoint), key: key.key_id });
    expect(items.map(({ decision_id }) => decision_id)).toEqual([made.tidy]);
  });

  test('that no call can match is refused by name', async () => {
    const [status, { errors }] = await readJson(api.call('/v1/calls?outcome=good&label=team'));
    expect([status, errors?.map(({ pointer }) => pointer).sort()]).toEqual([
      422,
      ['/query/label', '/query/outcome'],
    ]);
  });

  test('keeps its pages together, and the CSV has all of them', async () => {
    const first = await list({ key: key.key_id, limit: '3' });
    const rest = await list({ key: key.key_id, limit: '3', cursor: String(first.next_cursor) });
    expect([...first.items, ...rest.items].map(({ decision_id }) => decision_id)).toEqual(
      ['tidy', 'broken', 'paid', 'free'].map((name) => made[name]),
    );
    expect(rest.next_cursor).toBeNull();
    const csv = await (await api.call(`/v1/calls?format=csv&key=${key.key_id}`)).text();
    const lines = csv.trimEnd().split('\r\n');
    expect(lines).toHaveLength(5);
    expect(lines[3]).toContain(`,large-1,30,12,20,5,4,${key.key_id},bo,`);
  });
});

describe('the contents of calls', () => {
  const set = (content_days: number | null) =>
    api.call(`/v1/projects/${api.projectId}/settings`, { method: 'PUT', body: { content_days } });
  const read = (id: string, headers = {}) =>
    readJson<CallContent>(api.call(`/v1/calls/${id}/content`, { headers }));

  test('are not kept until the project asks for it', async () => {
    const id = await callOf('model.free');
    expect((await read(id))[0]).toBe(404);
    expect(await ended(id)).toMatchObject({ has_content: false });
    expect(await api.db('call_content')).toEqual([]);
  });

  test.each(['model.free', 'model.paid', 'tidy'])(
    'are kept then, for a key that may read them: %s',
    async (name) => {
      expect((await set(30)).status).toBe(200);
      const id = await callOf(name);
      const reader = await aKey(['capability:read', 'content:read']);
      const [status, content] = await read(id, reader.headers);
      expect([status, content]).toMatchObject([200, { decision_id: id, input: { messages } }]);
      const inDays = (Date.parse(content.deleted_at) - Date.now()) / 86_400_000;
      expect(Math.round(inDays)).toBe(30);
      if (name !== 'tidy') expect(content.output).toMatchObject({ text: 'Hello', reasoning: said.reasoning });
      const other = await aKey(['capability:read', 'capability:call', 'cost:read']);
      expect((await read(id, other.headers))[0]).toBe(403);
      const [, shown] = await readJson<CallDetail>(api.call(`/v1/calls/${id}`, { headers: other.headers }));
      expect(JSON.stringify(shown)).not.toContain('Hello');
    },
  );

  test('of a failed call are its input', async () => {
    await set(30);
    const id = await callOf('broken');
    expect((await read(id))[1]).toMatchObject({ input: { messages }, output: null });
  });

  test('are shortened where they are long', async () => {
    await set(30);
    const long = 'word '.repeat(40_000);
    const input = { messages: [{ role: 'user', content: long }, ...messages] };
    const id = await callOf('model.free', { body: { input } });
    const [, content] = await read(id);
    expect(JSON.stringify(content).length).toBeLessThan(131_072);
    expect(JSON.stringify(content)).toContain('more characters)');
    expect(content.input).toMatchObject({ messages: [{ role: 'user' }, { content: 'Hi' }] });
  });

  test('are gone after their days, and when they are switched off, and do not come back', async () => {
    await set(2);
    const [old, young] = [await callOf('model.free'), await callOf('model.free')];
    await api
      .db('call_content')
      .where({ attempt_id: old.replace('dec_', 'att_') })
      .update({ stored_at: api.db.raw("now() - interval '2 days 1 minute'") });
    expect([(await read(old))[0], (await read(young))[0]]).toEqual([404, 200]);
    await purgeContents(api.db);
    const kept = await api.db('call_content').pluck('attempt_id');
    expect(kept).toContain(young.replace('dec_', 'att_'));
    expect(kept).not.toContain(old.replace('dec_', 'att_'));

    await set(null);
    expect((await read(young))[0]).toBe(404);
    await set(2);
    expect((await read(young))[0]).toBe(404);
    await purgeContents(api.db);
    expect(await api.db('call_content')).toEqual([]);
  });

  test('go with the user whose they are', async () => {
    await set(2);
    const headers = { 'x-capstan-user': 'carl' };
    const id = await callOf('model.paid', { body: { input: { messages } }, headers });
    expect((await read(id))[0]).toBe(200);
    await api.call('/v1/users/carl', { method: 'DELETE' });
    expect((await read(id))[0]).toBe(404);
    expect((await list({ user: 'carl' })).items).toEqual([]);
  });
});
