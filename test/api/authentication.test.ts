import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createVerifiedKeys } from '../../src/parts/access/verified-keys.ts';
import { identify } from '../../src/use-cases/access/identification.ts';
import { generateKey } from '../../src/use-cases/access/key-text.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({}, { keyTrustMs: 0 });
});
afterAll(() => api.close());

async function codeOf(answer: Response): Promise<string> {
  return ((await answer.json()) as { code: string }).code;
}

async function countQueries(work: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const listener = () => count++;
  api.db.on('query', listener);
  await work();
  api.db.removeListener('query', listener);
  return count;
}

describe('a key', () => {
  test.each([
    ['as a bearer token', (key: string) => ({ authorization: `Bearer ${key}` })],
    ['in X-API-Key', (key: string) => ({ authorization: '', 'x-api-key': key })],
    [
      'in both headers, when it is the same',
      (key: string) => ({ authorization: `Bearer ${key}`, 'x-api-key': key }),
    ],
  ])('is accepted %s', async (_, headers) => {
    const answer = await api.call('/v1/pipelines', { headers: headers(api.apiKey) });
    expect(answer.status).toBe(200);
  });

  test('is required, and the answer explains how to send one', async () => {
    const answer = await api.call('/v1/pipelines', { headers: { authorization: '' } });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="capstan"');
    expect(answer.headers.get('content-type')).toBe('application/problem+json');
    expect(await answer.json()).toEqual({
      type: '/docs/errors#unauthenticated',
      title: expect.any(String),
      status: 401,
      detail: expect.stringContaining('X-API-Key'),
      instance: '/v1/pipelines',
      code: 'unauthenticated',
      request_id: answer.headers.get('x-request-id'),
    });
  });

  test('that was never issued is refused', async () => {
    const answer = await api.call('/v1/pipelines', {
      headers: { authorization: `Bearer ${generateKey('dev').key}` },
    });
    expect([answer.status, await codeOf(answer)]).toEqual([401, 'unauthenticated']);
  });

  test('with a wrong checksum is refused without asking the database', async () => {
    const wrong = `${api.apiKey.slice(0, -1)}${api.apiKey.endsWith('0') ? '1' : '0'}`;
    let status = 0;
    const queries = await countQueries(async () => {
      status = (await api.call('/v1/pipelines', { headers: { authorization: `Bearer ${wrong}` } })).status;
    });
    expect([status, queries]).toEqual([401, 0]);
  });

  test('with a known id and another secret is refused', async () => {
    const known = generateKey('dev');
    const row = { key_id: known.key_id, name: 'known', scopes: ['admin'], projects: [api.projectId] };
    await api.db('api_key').insert({ ...row, secret_sha256: generateKey('dev').secret_sha256 });
    const answer = await api.call('/v1/pipelines', { headers: { authorization: `Bearer ${known.key}` } });
    expect(answer.status).toBe(401);
  });

  test('must be the only one in a request', async () => {
    const other = await api.createKey({ scopes: ['admin'] });
    const answer = await api.call('/v1/pipelines', { headers: { 'x-api-key': other } });
    expect([answer.status, await codeOf(answer)]).toEqual([401, 'unauthenticated']);
  });

  test('that has expired is refused', async () => {
    const expires_at = new Date(Date.now() + 60_000).toISOString();
    const body = { name: 'short', scopes: ['admin'], projects: [api.projectId], expires_at };
    const { key, key_id } = (await (await api.call('/v1/keys', { body })).json()) as Record<string, string>;
    const headers = { authorization: `Bearer ${key}` };
    expect((await api.call('/v1/pipelines', { headers })).status).toBe(200);
    await api
      .db('api_key')
      .where({ key_id })
      .update({ expires_at: new Date(Date.now() - 1_000) });
    expect((await api.call('/v1/pipelines', { headers })).status).toBe(401);
  });

  test('is shown once and stored as a hash', async () => {
    const key = await api.createKey({ scopes: ['run:read'] });
    const secret = key.split('_')[3]?.slice(0, 43) ?? '';
    const { rows } = await api.db.raw('select to_jsonb(k)::text as row from api_key k');
    expect(rows.some(({ row }: { row: string }) => row.includes(secret))).toBe(false);
    expect(await (await api.call('/v1/keys?limit=200')).text()).not.toContain(secret);
    expect(api.log.join('')).not.toContain(secret);
  });
});

describe('a revoked key', () => {
  test('is refused at once by the process that revoked it', async () => {
    const body = { name: 'gone', scopes: ['admin'], projects: [api.projectId] };
    const { key, key_id } = (await (await api.call('/v1/keys', { body })).json()) as Record<string, string>;
    expect((await api.call(`/v1/keys/${key_id}`, { method: 'DELETE' })).status).toBe(200);
    expect((await api.call('/v1/pipelines', { headers: { authorization: `Bearer ${key}` } })).status).toBe(
      401,
    );
  });

  test('is trusted by another process no longer than its cache holds', async () => {
    const trusting = (trustMs: number) => ({ db: api.db, verifiedKeys: createVerifiedKeys(trustMs) });
    const [elsewhere, soon] = [trusting(60_000), trusting(50)];
    const body = { name: 'gone', scopes: ['admin'], projects: [api.projectId] };
    const { key = '', key_id } = (await (await api.call('/v1/keys', { body })).json()) as Record<
      string,
      string
    >;
    for (const one of [elsewhere, soon]) expect(await identify(one, key)).toMatchObject({ key_id });
    await api.call(`/v1/keys/${key_id}`, { method: 'DELETE' });
    const queries = await countQueries(async () => identify(elsewhere, key));
    expect(queries).toBe(0);
    await waitFor('the refusal', async () => (await identify(soon, key)) === null);
  });
});

describe('a project', () => {
  test('is the first of the key when the request names none', async () => {
    const other = await api.createProject('second');
    const key = await api.createKey({ scopes: ['admin'], projects: [other.projectId, api.projectId] });
    const headers = { authorization: `Bearer ${key}` };
    const { job_id } = (await (await api.call('/v1/jobs', { headers, body: { job: {} } })).json()) as Record<
      string,
      string
    >;
    const row = await api.db('job').where({ job_id }).first();
    expect(row.project_id).toBe(other.projectId);
  });

  test('that the key does not hold is refused, whether or not it exists', async () => {
    const other = await api.createProject('foreign');
    const key = await api.createKey({ scopes: ['admin'] });
    const ask = async (project: string) => {
      const headers = { authorization: `Bearer ${key}`, 'x-project-id': project };
      const answer = await api.call('/v1/pipelines', { headers });
      const { request_id: _, ...problem } = (await answer.json()) as Record<string, unknown>;
      return problem;
    };
    const foreign = await ask(other.projectId);
    expect(foreign).toMatchObject({ status: 403, code: 'forbidden' });
    expect(await ask('prj_missing')).toEqual(foreign);
  });

  test('belongs to the admin key that created it, and to no other', async () => {
    const stranger = await api.createKey({ scopes: ['admin'] });
    const { projectId } = await api.createProject('mine');
    const list = async (key: string) =>
      (await api.call('/v1/projects?limit=200', { headers: { authorization: `Bearer ${key}` } })).text();
    expect(await list(api.apiKey)).toContain(projectId);
    expect(await list(stranger)).not.toContain(projectId);
    const body = { name: 'grab', scopes: ['admin'], projects: [projectId] };
    const grab = await api.call('/v1/keys', { headers: { authorization: `Bearer ${stranger}` }, body });
    expect([grab.status, await codeOf(grab)]).toEqual([403, 'forbidden']);
  });

  test('needs a time zone that the database knows', async () => {
    const answer = await api.call('/v1/projects', { body: { name: 'x', timezone: 'Mars/Olympus' } });
    expect(await answer.json()).toMatchObject({
      code: 'request_invalid',
      errors: [{ pointer: '/timezone' }],
    });
  });
});

describe('a scope', () => {
  test.each([
    ['POST', '/v1/keys', 'admin'],
    ['GET', '/v1/projects', 'admin'],
    ['POST', '/v1/pipelines', 'pipeline:write'],
    ['POST', '/v1/jobs', 'run:write'],
    ['POST', '/v1/runs', 'run:write'],
    ['POST', '/v1/capabilities', 'capability:register'],
    ['PUT', '/v1/media/job_1/a.txt', 'media:write'],
  ])('is needed for %s %s: %s', async (method, path, scope) => {
    const key = await api.createKey({ scopes: ['run:read'] });
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const answer = await api.call(path, { method, headers, ...(method === 'GET' ? {} : { body: '{}' }) });
    const problem = (await answer.json()) as { detail: string };
    expect(problem).toMatchObject({ status: 403, code: 'forbidden' });
    expect(problem.detail).toContain(`lacks the scope ${scope}`);
  });
});

describe('leave to register', () => {
  const address = 'http://10.1.1.2:9';
  const registration = (name: string) => ({
    name,
    version: '1',
    endpoint: address,
    spec_url: `${address}/spec`,
    health_url: `${address}/health`,
    cost_model: { type: 'free', rate_usd: 0 },
    tags: [],
  });

  test.each([
    ['capability:register:concat*', 'concat', 201],
    ['capability:register:concat*', 'concat.fast', 201],
    ['capability:register:concat*', 'audio.concat', 403],
    ['capability:register:mix', 'mix', 201],
    ['capability:register:mix', 'mix.other', 403],
    ['capability:register', 'whatever', 201],
  ] as const)('%s and the name %s: %i', async (scope, name, status) => {
    const headers = { authorization: `Bearer ${await api.createKey({ scopes: [scope] })}` };
    expect((await api.call('/v1/capabilities', { headers, body: registration(name) })).status).toBe(status);
    const body = { endpoint: address };
    const path = `/v1/capabilities/${name}`;
    const beat = await api.call(`${path}/heartbeat`, { headers, body });
    const left = await api.call(path, { method: 'DELETE', headers, body });
    expect([beat.status, left.status]).toEqual(status === 403 ? [403, 403] : [200, 200]);
    expect((await api.call('/v1/pipelines', { headers })).status).toBe(403);
  });

  test.each([
    'capability:register:',
    'capability:register:*',
    'capability:register:a*b',
    'capability:register:a b',
    'run:read:x',
  ])('is not %j', async (scope) => {
    const body = { name: 'x', scopes: [scope], projects: [api.projectId] };
    expect((await api.call('/v1/keys', { body })).status).toBe(422);
  });
});

test('keys of other projects can be neither listed nor revoked', async () => {
  const { apiKey } = await api.createProject('other');
  const mine = await api.createKey({ scopes: ['run:read'] });
  const key_id = `key_${mine.split('_')[2]}`;
  const headers = { authorization: `Bearer ${apiKey}` };
  expect(await (await api.call('/v1/keys?limit=200', { headers })).text()).not.toContain(key_id);
  expect((await api.call(`/v1/keys/${key_id}`, { method: 'DELETE', headers })).status).toBe(404);
  expect((await api.call('/v1/limits', { headers: { authorization: `Bearer ${mine}` } })).status).toBe(200);
});
