import type { Key, KeyCreated } from '@capstan/core/contracts/access';
import type { Limits } from '@capstan/core/contracts/request-limits';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findHolder } from '../../src/db/access/session.ts';
import { toHolder } from '../../src/use-cases/access/caller.ts';
import { generateKey } from '../../src/use-cases/access/key-text.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { execOn, registerInstance } from '../support/direct-calls.ts';
import { isLong } from '../support/long.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({
    RATE_LIMITS: 'on',
    RATE_REQUESTS_PER_S: 5,
    RATE_STARTS_PER_S: 2,
    RATE_ESCALATIONS_PER_MIN: 3,
    RATE_HEARTBEATS_PER_S: 1,
  });
});
afterAll(() => api.close());

async function askAtOnce(count: number, ask: () => Promise<Response>): Promise<Map<number, number>> {
  const answers = await Promise.all(Array.from({ length: count }, ask));
  const counts = new Map<number, number>();
  for (const { status } of answers) counts.set(status, (counts.get(status) ?? 0) + 1);
  return counts;
}

/** Asks so often at once until some are refused: on a machine that is still meanwhile, a bucket fills again. */
function askTooOften(count: number, ask: () => Promise<Response>): Promise<Map<number, number>> {
  return waitFor('a refusal', async () => {
    const counts = await askAtOnce(count, ask);
    return counts.has(429) ? counts : undefined;
  });
}

describe('a key', () => {
  test('that asks too often is answered 429 with Retry-After, and other keys continue', async () => {
    const headers = { authorization: `Bearer ${await api.createKey({ scopes: ['admin'] })}` };
    const counts = await askAtOnce(100, () => api.call('/v1/pipelines', { headers }));
    expect(counts.get(200)).toBeGreaterThanOrEqual(25);
    expect(counts.get(429)).toBeGreaterThanOrEqual(20);
    let answer = await api.call('/v1/pipelines', { headers });
    while (answer.status !== 429) answer = await api.call('/v1/pipelines', { headers });
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(await answer.json()).toMatchObject({
      code: 'rate_limited',
      detail: expect.stringContaining('5 a second are allowed, 25 at once'),
    });
    expect((await api.call('/v1/pipelines')).status).toBe(200);
  });

  test.each([
    ['run:write', 'POST', '/v1/runs', 10],
    ['escalate', 'POST', '/advise', 3],
    ['capability:register', 'POST', '/v1/capabilities/concat/heartbeat', 20],
  ] as const)('has a rate of its own for %s', async (scope, method, path, burst) => {
    const headers = { authorization: `Bearer ${await api.createKey({ scopes: [scope, 'pipeline:read'] })}` };
    const ask = () => api.call(path, { method, headers, body: {} });
    expect(await askAtOnce(burst, ask)).toEqual(new Map([[422, burst]]));
    await askTooOften(5, ask);
    expect((await api.call('/v1/pipelines', { headers })).status).toBe(200);
  });
});

test('wrong keys are answered 401 ten times a minute, then 429, while right ones pass', async () => {
  const guess = () =>
    api.call('/v1/pipelines', { headers: { authorization: `Bearer ${generateKey('dev').key}` } });
  expect(await askAtOnce(30, guess)).toEqual(
    new Map([
      [401, 10],
      [429, 20],
    ]),
  );
  expect((await guess()).headers.get('retry-after')).toMatch(/^[1-6]$/);
  expect((await api.call('/v1/pipelines')).status).toBe(200);
});

test('a flood of requests over the rate leaves the process answering', async () => {
  const headers = { authorization: `Bearer ${await api.createKey({ scopes: ['admin'] })}` };
  const flood = askAtOnce(isLong ? 300 : 80, () => api.call('/v1/pipelines', { headers }));
  // how soon is shown by the bench of attacks; here client and server share a process
  for (let at = 0; at < 5; at++) expect((await fetch(`${api.url}/livez`)).status).toBe(200);
  await flood;
});

test('the rates are among the limits; none where they are off', async () => {
  const [, { rates }] = await readJson<Limits>(api.call('/v1/limits'));
  expect(rates).toMatchObject({
    request: { per_second: 5, burst: 25 },
    escalation: { per_second: 0.05, burst: 3 },
    wrong_key: { burst: 10 },
  });
});

describe('a key with rates of its own', () => {
  async function aKeyWith(rates: object): Promise<Record<string, string>> {
    const body = {
      name: 'ci',
      projects: [api.projectId],
      scopes: ['pipeline:read', 'capability:call'],
      ...rates,
    };
    const [status, { key_id, key }] = await readJson<KeyCreated>(api.call('/v1/keys', { body }));
    expect(status).toBe(201);
    const [, { items }] = await readJson<{ items: Key[] }>(api.call('/v1/keys?limit=200'));
    expect(items.find((one) => one.key_id === key_id)).toMatchObject(rates);
    return { authorization: `Bearer ${key}` };
  }

  test('is answered 429 above its requests in a minute', async () => {
    const headers = await aKeyWith({ requests_per_minute: 3 });
    const ask = () => api.call('/v1/pipelines', { headers });
    expect((await askAtOnce(5, ask)).get(200)).toBe(3);
    const answer = await ask();
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([
      429,
      expect.stringMatching(/^(1\d|20)$/),
    ]);
    expect(await answer.json()).toMatchObject({
      code: 'rate_limited',
      detail: expect.stringContaining('3 a minute'),
    });
  });

  test('gives the keys that it creates no higher ones, also through a session', async () => {
    const scopes = ['admin', 'pipeline:read'];
    const headers = await aKeyWith({ requests_per_minute: 50, scopes });
    const make = (rates: object) =>
      readJson<KeyCreated>(
        api.call('/v1/keys', { headers, body: { name: 'x', projects: [api.projectId], scopes, ...rates } }),
      );
    expect((await make({ requests_per_minute: 51 }))[0]).toBe(422);
    const ids = [(await make({}))[1].key_id, (await make({ requests_per_minute: 2 }))[1].key_id];
    const rows = await api.db('api_key').whereIn('key_id', ids).orderBy('requests_per_minute');
    expect(rows.map(({ requests_per_minute }) => requests_per_minute)).toEqual([2, 50]);
    const holder = await findHolder(api.db, ids[1] ?? '');
    const [own, above] = [ids[1], rows[1]?.created_by].map(String);
    expect(holder === null ? null : toHolder(holder)?.rates).toEqual({
      requests: [
        { key_id: own, per_minute: 2 },
        { key_id: above, per_minute: 50 },
      ],
      tokens: [],
    });
  });

  test('may call models until they report more tokens than it has in a minute, and read then', async () => {
    const echoed = { text: 'Hi', usage: { input_tokens: 7_000, output_tokens: 400 } };
    await registerInstance(api, { name: 'model.echo' });
    const headers = await aKeyWith({ tokens_per_minute: 1_000 });
    const call = () => execOn(api, 'model.echo', { body: { input: echoed }, headers });
    expect((await call()).status).toBe(200);
    const refused = await call();
    expect([refused.status, refused.body.code]).toEqual([429, 'rate_limited']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    const body = { model: 'echo', messages: [{ role: 'user', content: 'Hi' }] };
    const chat = await api.call('/openai/v1/chat/completions', { body, headers });
    expect([chat.status, ((await chat.json()) as { error: { type: string } }).error.type]).toEqual([
      429,
      'rate_limit_error',
    ]);
    expect((await api.call('/v1/pipelines', { headers })).status).toBe(200);
  });
});

test('deliveries to a hook count as starts of its key, and wrong signatures as wrong keys', async () => {
  const maker = { authorization: `Bearer ${await api.createKey({ scopes: ['admin'] })}` };
  const definition = { pipeline: 'received', version: '1', steps: [{ id: 'a', wait: '1d' }] };
  expect((await api.call('/v1/pipelines', { body: definition })).status).toBe(201);
  const hook = { name: 'inward', pipeline: 'received', signature: 'bearer', secret: 'a-secret-of-a-program' };
  expect((await api.call('/v1/hooks', { body: hook, headers: maker })).status).toBe(201);
  const deliver = (secret: string) =>
    api.call(`/v1/hooks/inward?project_id=${api.projectId}`, {
      body: {},
      headers: { authorization: `Bearer ${secret}` },
    });
  expect(await askAtOnce(10, () => deliver(hook.secret))).toEqual(new Map([[202, 10]]));
  await askTooOften(5, () => deliver(hook.secret));
  await askTooOften(15, () => deliver('another-secret'));
  const refused = await deliver('another-secret');
  expect([refused.status, await refused.text()]).toEqual([
    429,
    expect.stringContaining('too many wrong keys'),
  ]);
});
