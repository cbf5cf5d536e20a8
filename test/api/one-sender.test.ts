/** What one key, or one address, sends at once leaves the server to the others. */
import type { ClientRequest } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { noMaintenance, readJson, startTestApi, type TestApi } from '../support/api.ts';
import { countWaiting } from '../support/locks.ts';
import { sendRaw } from '../support/raw-request.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
let other: { authorization: string };
beforeAll(async () => {
  api = await startTestApi({
    RATE_LIMITS: 'on',
    REQUESTS_AT_ONCE: 30,
    STREAMS_AT_ONCE: 3,
    RATE_SESSIONS_PER_MIN: 3,
    BODIES_BYTES: 1_048_576,
    BODY_LIMIT_BYTES: 65_536,
    DEFINITION_LIMIT_BYTES: 65_536,
    DATABASE_POOL: 2,
    ...noMaintenance, // it would take a connection, and wait for the locked table
    DATABASE_HISTORY_POOL: 5,
  });
  other = { authorization: `Bearer ${(await api.createProject('other')).apiKey}` };
});
afterAll(() => api.close());

test('a key has as many streams as it may: the next is refused, until one has ended', async () => {
  const open = async (headers = {}): Promise<AbortController & { status: number }> => {
    const control = new AbortController();
    const { status } = await fetch(`${api.url}/v1/stream`, {
      headers: { authorization: `Bearer ${api.apiKey}`, ...headers },
      signal: control.signal,
    });
    return Object.assign(control, { status });
  };
  const streams = await Promise.all([open(), open(), open()]);
  expect(streams.map(({ status }) => status)).toEqual([200, 200, 200]);
  const [status, problem] = await readJson(api.call('/v1/stream'));
  expect([status, problem.code]).toEqual([429, 'rate_limited']);
  expect(problem.detail).toContain('3 streams open, and 3 are allowed at once');
  const others = await open(other);
  expect([others.status, (await api.call('/v1/pipelines')).status]).toEqual([200, 200]);
  streams[0]?.abort();
  const next = await waitFor('one to have ended', async () => {
    const tried = await open();
    return tried.status === 200 ? tried : undefined;
  });
  for (const control of [...streams, others, next]) control.abort();
});

test('searches of the past run one at a time, and other requests are not delayed', async () => {
  const held = await api.db.transaction();
  await held.raw('lock table audit in access exclusive mode');
  const reads = Array.from({ length: 20 }, () => api.call('/v1/audit'));
  await waitFor('one of them to read', async () => (await countWaiting(api.db)) === 1);
  expect((await api.call('/v1/runs', { headers: other })).status).toBe(200);
  expect((await api.call('/v1/pipelines')).status).toBe(200);
  expect(await countWaiting(api.db)).toBe(1);
  await held.commit();
  const statuses = (await Promise.all(reads)).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200]));
});

test('a key with more open requests than it may have is refused', async () => {
  const held = await api.db.transaction();
  await held.raw('lock table audit in access exclusive mode');
  const reads = Array.from({ length: 31 }, () => api.call('/v1/audit'));
  const refused = await Promise.race(
    reads.map(async (read) => ((await read).status === 429 ? read : new Promise(() => {}))),
  );
  const [, problem] = await readJson(refused as Promise<Response>);
  expect(problem.detail).toContain('30 requests open, and 30 are allowed at once');
  expect((await api.call('/v1/pipelines', { headers: other })).status).toBe(200);
  await held.commit();
  await Promise.all(reads);
});

/** A body of which only the first bytes come, and the answer that comes anyway. */
function sendSlowly(path: string, bytes: number, key: string | null) {
  let sent: ClientRequest | undefined;
  const answer = sendRaw(
    api.url,
    {
      path,
      method: 'POST',
      headers: [
        ...[
          'Host',
          'capstan.test',
          'Content-Type',
          'application/json',
          'Content-Length',
          String(bytes + 1_000),
        ],
        ...(key === null ? [] : ['Authorization', `Bearer ${key}`]),
      ],
    },
    (request) => {
      sent = request;
      request.write(Buffer.alloc(bytes, ' '));
    },
  );
  return { answer, cut: () => void sent?.destroy() };
}

test('bodies of which it sends the first part hold no more memory than its share', async () => {
  const slow = Array.from({ length: 12 }, () => sendSlowly('/v1/jobs', 60_000, api.apiKey));
  const answers: { status: number; body: string }[] = [];
  const ends = slow.map(({ answer }) =>
    answer.then(
      (given) => answers.push(given),
      () => undefined,
    ),
  );
  // 262,144 bytes: four of them
  await waitFor('eight to be refused', () => answers.length === 8);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([429]));
  expect(answers[0]?.body).toContain('hold more than the allowed 262144 bytes together');
  expect((await api.call('/v1/jobs', { body: {}, headers: other })).status).not.toBe(429);
  for (const { cut } of slow) cut();
  await Promise.all(ends);
  await waitFor(
    'its share to be free',
    async () => (await api.call('/v1/jobs', { body: {} })).status !== 429,
  );
});

test('a large body is refused before it can sign in', async () => {
  const { answer, cut } = sendSlowly('/v1/session', 20_000, null);
  expect(await answer).toMatchObject({ status: 413, body: expect.stringContaining('allowed 4096 bytes') });
  cut();
});

test('sessions that one key opens have a rate, and a code that comes too soon stays good', async () => {
  const open = (body: object) => api.call('/v1/session', { body, headers: { authorization: '' } });
  const key = { key: api.apiKey };
  for (let session = 0; session < 3; session++) expect((await open(key)).status).toBe(204);
  const [status, problem] = await readJson(open(key));
  expect([status, problem.code]).toEqual([429, 'rate_limited']);
  const [, { url }] = await readJson<{ url: string }>(api.call('/v1/login-links', { method: 'POST' }));
  expect((await open({ code: new URL(url).hash.slice(1) })).status).toBe(429);
  expect([(await api.db('session')).length, (await api.db('login_code')).length]).toEqual([3, 1]);
});
