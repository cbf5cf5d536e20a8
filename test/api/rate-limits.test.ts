import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Limits } from '../../src/contracts/limits.ts';
import { generateKey } from '../../src/services/access/key-text.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';

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

describe('a key', () => {
  test('that asks too often is answered 429 and when to come again, and others go on', async () => {
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
    const counts = await askAtOnce(burst + 5, () => api.call(path, { method, headers, body: {} }));
    expect(counts.get(429)).toBeGreaterThanOrEqual(3);
    expect(counts.get(422)).toBeGreaterThanOrEqual(burst);
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

test('three hundred requests over the rate leave the process answering', async () => {
  const headers = { authorization: `Bearer ${await api.createKey({ scopes: ['admin'] })}` };
  const flood = askAtOnce(300, () => api.call('/v1/pipelines', { headers }));
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
