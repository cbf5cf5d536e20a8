/** Signing in with a browser: what opens a session, what it may do, what it does not survive. */
import { hash } from 'node:crypto';
import type { BrowserSession } from '@capstan/core/contracts/sign-in';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { purgeSessions } from '../../src/db/access/session.ts';
import { type CallOptions, noMaintenance, readJson, startTestApi, type TestApi } from '../support/api.ts';
import { anInstance } from '../support/factories.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
beforeAll(async () => {
  // No maintenance: it would delete old sessions before the test does.
  api = await startTestApi(noMaintenance, { keyTrustMs: 0 });
  await anInstance(api.db, { name: 'b' });
});
afterAll(() => api.close());

const ownPage = { 'x-capstan-console': '1', 'sec-fetch-site': 'same-origin' };

function open(body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return api.call('/v1/session', { body, headers: { authorization: '', ...headers } });
}

function cookieOf(answer: Response): string {
  return (answer.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
}

async function signIn(key = api.apiKey): Promise<string> {
  return cookieOf(await open({ key }));
}

function withCookie(cookie: string, path: string, options: CallOptions = {}): Promise<Response> {
  return api.call(path, { ...options, headers: { authorization: '', cookie, ...options.headers } });
}

async function codeOf(asked: Promise<Response>): Promise<[number, string]> {
  const [status, { code }] = await readJson(asked);
  return [status, code];
}

async function aLoginCode(): Promise<string> {
  const [, { url }] = await readJson<{ url: string }>(api.call('/v1/login-links', { method: 'POST' }));
  return new URL(url).hash.slice(1);
}

describe('signing in', () => {
  test('by a key sets a cookie that no script and no other site gets', async () => {
    const answer = await open({ key: api.apiKey });
    expect([answer.status, await answer.text()]).toEqual([204, '']);
    expect(answer.headers.get('set-cookie')).toMatch(
      /^capstan_session=ses_[0-9A-Za-z]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
    );
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });

  test('returns the name and rights of the person', async () => {
    const [status, session] = await readJson<BrowserSession>(withCookie(await signIn(), '/v1/session'));
    expect([status, session]).toEqual([
      200,
      {
        key_id: expect.stringMatching(/^key_/),
        name: 'default',
        person: null,
        scopes: expect.arrayContaining(['admin', 'operator']),
        projects: [{ project_id: api.projectId, name: 'default', timezone: 'UTC' }],
        version: expect.stringMatching(/^\d+\.\d+\.\d+/),
        temporal_ui_url: null,
      },
    ]);
  });

  test('by a link works once, of several at a time', async () => {
    const askedAt = Date.now();
    const answer = await api.call('/v1/login-links', { method: 'POST' });
    const answeredAt = Date.now();
    const { url, expires_at } = (await answer.json()) as { url: string; expires_at: string };
    expect(answer.status).toBe(201);
    expect(url).toMatch(/^http:\/\/capstan\.test\/ui\/login#[0-9A-Za-z]{43}$/);
    expect(Date.parse(expires_at)).toBeGreaterThanOrEqual(askedAt + 600_000);
    expect(Date.parse(expires_at)).toBeLessThanOrEqual(answeredAt + 600_000);
    const code = new URL(url).hash.slice(1);
    const answers = await Promise.all([1, 2, 3, 4].map(() => open({ code })));
    expect(answers.map(({ status }) => status).sort()).toEqual([204, 401, 401, 401]);
    const cookie = cookieOf(answers.find(({ status }) => status === 204) as Response);
    expect((await withCookie(cookie, '/v1/runs')).status).toBe(200);
  });

  test('keeps digests alone', async () => {
    const code = await aLoginCode();
    const cookie = await signIn();
    const rows = JSON.stringify([await api.db('login_code'), await api.db('session')]);
    expect(rows).not.toContain(code);
    expect(rows).not.toContain(cookie.split('=')[1]);
    const digest = hash('sha256', code, 'buffer');
    expect(await api.db('login_code').where({ code_sha256: digest })).toHaveLength(1);
  });

  test('by a link is over after 10 minutes', async () => {
    const code = await aLoginCode();
    await api.db('login_code').update({ expires_at: new Date(Date.now() - 1) });
    expect(await codeOf(open({ code }))).toEqual([401, 'unauthenticated']);
  });

  test.each([
    [{ key: 'cap_dev_x' }, 401, 'unauthenticated'],
    [{ code: 'x' }, 401, 'unauthenticated'],
    [{}, 422, 'request_invalid'],
    [{ key: 'a', code: 'b' }, 422, 'request_invalid'],
  ])('by %j is refused', async (body, status, code) => {
    expect(await codeOf(open(body))).toEqual([status, code]);
  });

  test('needs admin to make a link, and any key to ask who one is', async () => {
    const key = await api.createKey({ scopes: ['cost:read'] });
    const headers = { authorization: `Bearer ${key}` };
    expect(await codeOf(api.call('/v1/login-links', { method: 'POST', headers }))).toEqual([
      403,
      'forbidden',
    ]);
    expect((await api.call('/v1/session', { headers })).status).toBe(200);
  });

  test('is not done by pages of others', async () => {
    const headers = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' };
    expect(await codeOf(open({ key: api.apiKey }, headers))).toEqual([403, 'csrf_refused']);
    expect(await codeOf(open({ key: api.apiKey }, { origin: 'https://evil.test' }))).toEqual([
      403,
      'csrf_refused',
    ]);
  });

  test('is written into the log of what was done', async () => {
    await open({ code: await aLoginCode() });
    const actions = (await api.db('audit').select('action')).map(({ action }) => action);
    expect(actions).toEqual(expect.arrayContaining(['login_link.created', 'session.opened']));
  });
});

test('without a provider the API offers no sign-in, and its address is 404', async () => {
  expect(await readJson(api.call('/v1/sign-in'))).toEqual([200, { oidc: null }]);
  expect((await api.call('/v1/sessions/oidc')).status).toBe(404);
});

test('wrong codes of an address are counted', async () => {
  const limited = await startTestApi({ RATE_LIMITS: 'on', RATE_WRONG_KEYS_PER_MIN: 2 });
  const ask = () => limited.call('/v1/session', { body: { code: 'x' }, headers: { authorization: '' } });
  const answers = [await ask(), await ask(), await ask()];
  expect(answers.map(({ status }) => status)).toEqual([401, 401, 429]);
  await limited.close();
});

test('where browsers come by https, the cookie has a name that only this host can set', async () => {
  const secure = await startTestApi({ PUBLIC_URL: 'https://capstan.example' });
  const headers = { authorization: '', origin: 'https://capstan.example' };
  const answer = await secure.call('/v1/session', { body: { key: secure.apiKey }, headers });
  const cookie = answer.headers.get('set-cookie') ?? '';
  expect(cookie).toMatch(
    /^__Host-capstan_session=ses_\w{43}; Path=\/; HttpOnly; SameSite=Strict; Secure; Max-Age=43200$/,
  );
  const others = cookie.replace('__Host-', '').split(';')[0] as string;
  const asked = await secure.call('/v1/runs', { headers: { authorization: '', cookie: others } });
  expect(asked.status).toBe(401);
  await secure.close();
});

describe('a cookie', () => {
  test('changes something from a page of this server alone', async () => {
    const cookie = await signIn();
    const post = (headers: Record<string, string>) =>
      withCookie(cookie, '/v1/jobs', { body: { job: {} }, headers });
    expect((await post(ownPage)).status).toBe(201);
    const origin = { origin: api.url, 'x-capstan-console': '1' };
    expect((await post(origin)).status).toBe(201);
    const refused = [
      {},
      { 'x-capstan-console': '1' },
      { 'sec-fetch-site': 'same-origin' },
      { 'x-capstan-console': '1', 'sec-fetch-site': 'same-site' },
      { 'x-capstan-console': '1', 'sec-fetch-site': 'cross-site', origin: api.url },
      { 'x-capstan-console': '1', 'sec-fetch-site': 'none' },
      { 'x-capstan-console': '1', origin: 'http://evil.test' },
      { 'x-capstan-console': '1', origin: api.url.replace('http:', 'https:') },
      { 'x-capstan-console': '1', origin: 'null' },
    ] as Record<string, string>[];
    for (const headers of refused) expect(await codeOf(post(headers))).toEqual([403, 'csrf_refused']);
  });

  test('is not asked for when a key is sent, which counts', async () => {
    const weak = await api.createKey({ scopes: ['cost:read'] });
    const headers = { authorization: `Bearer ${weak}` };
    const asked = withCookie(await signIn(), '/v1/runs', { headers });
    expect(await codeOf(asked)).toEqual([403, 'forbidden']);
  });

  test('has no more rights than its key', async () => {
    const cookie = await signIn(await api.createKey({ scopes: ['cost:read'] }));
    expect((await withCookie(cookie, '/v1/costs')).status).toBe(200);
    expect(await codeOf(withCookie(cookie, '/v1/runs'))).toEqual([403, 'forbidden']);
  });

  test('is no key, and a key no cookie', async () => {
    const secret = (await signIn()).split('=')[1];
    const headers = { authorization: `Bearer ${secret}` };
    expect(await codeOf(api.call('/v1/runs', { headers }))).toEqual([401, 'unauthenticated']);
    const cookie = `capstan_session=${api.apiKey}`;
    expect(await codeOf(withCookie(cookie, '/v1/runs'))).toEqual([401, 'unauthenticated']);
  });

  test('ends when one signs out, here and in the browser', async () => {
    const cookie = await signIn();
    const out = await withCookie(cookie, '/v1/session', { method: 'DELETE', headers: ownPage });
    expect(out.status).toBe(204);
    expect(out.headers.get('set-cookie')).toMatch(/^capstan_session=;.*Max-Age=0$/);
    const asked = await withCookie(cookie, '/v1/runs');
    expect(asked.status).toBe(401);
    expect(asked.headers.get('set-cookie')).toMatch(/^capstan_session=;.*Max-Age=0$/);
  });

  test('ends after 12 hours', async () => {
    const cookie = await signIn();
    await api.db('session').update({ expires_at: new Date(Date.now() - 1) });
    expect((await withCookie(cookie, '/v1/runs')).status).toBe(401);
  });

  test('lives no longer than its key', async () => {
    const expires_at = new Date(Date.now() + 60_000).toISOString();
    const body = { name: 'short', scopes: ['run:read'], projects: [api.projectId], expires_at };
    const [, { key, key_id }] = await readJson<{ key: string; key_id: string }>(
      api.call('/v1/keys', { body }),
    );
    await signIn(key);
    const [row] = await api.db('session').where({ key_id });
    expect(row.expires_at.toISOString()).toBe(expires_at);
  });

  test.each([
    ['revoked', (id: string) => api.call(`/v1/keys/${id}`, { method: 'DELETE' })],
    ['renewed', (id: string) => api.call(`/v1/keys/${id}/rotate`, { body: { overlap_s: 0 } })],
  ])('ends when its key is %s, and so do its streams', async (_, end) => {
    const body = { name: 'short', scopes: ['run:read', 'admin'], projects: [api.projectId] };
    const [, { key, key_id }] = await readJson<{ key: string; key_id: string }>(
      api.call('/v1/keys', { body }),
    );
    const cookie = await signIn(key);
    const definition = { pipeline: 'p', version: '1', steps: [{ id: 'a', capability: 'b' }] };
    const [, { run_id }] = await readJson<{ run_id: string }>(api.call('/v1/runs', { body: { definition } }));
    const headers = { accept: 'text/event-stream' };
    const stream = await withCookie(cookie, `/v1/runs/${run_id}/events`, { headers });
    let isCut = false;
    stream.text().catch(() => {
      isCut = true;
    });
    await end(key_id);
    expect((await withCookie(cookie, '/v1/runs')).status).toBe(401);
    await waitFor('the stream to be cut', () => isCut);
  });

  test('does not renew its key', async () => {
    const body = { name: 'short', scopes: ['admin'], projects: [api.projectId] };
    const [, { key, key_id }] = await readJson<{ key: string; key_id: string }>(
      api.call('/v1/keys', { body }),
    );
    const asked = { body: {}, headers: ownPage };
    const refused = await withCookie(await signIn(key), `/v1/keys/${key_id}/rotate`, asked);
    expect(refused.status).toBe(403);
  });

  test('that is long over is forgotten', async () => {
    await signIn();
    await api.db('session').update({ created_at: new Date(Date.now() - 25 * 3_600_000) });
    expect(await purgeSessions(api.db)).toBeGreaterThan(0);
    expect(await api.db('session')).toEqual([]);
  });
});

describe('project_id in the address', () => {
  test('selects a project where something is read', async () => {
    const { projectId } = await api.createProject('second');
    await api.call('/v1/jobs', { body: { job: { a: 1 } }, headers: { 'x-project-id': projectId } });
    const [job] = await api.db('job').where({ project_id: projectId });
    expect((await api.call(`/v1/jobs/${job.job_id}?project_id=${projectId}`)).status).toBe(200);
    expect((await api.call(`/v1/jobs/${job.job_id}`)).status).toBe(404);
    expect(await codeOf(api.call('/v1/runs?project_id=prj_x'))).toEqual([403, 'forbidden']);
    const headers = { 'x-project-id': api.projectId };
    const both = api.call(`/v1/runs?project_id=${projectId}`, { headers });
    expect(await codeOf(both)).toEqual([422, 'request_invalid']);
    const twice = api.call(`/v1/runs?project_id=${projectId}&project_id=${projectId}`, {});
    expect((await twice).status).toBe(200);
  });

  test('is no such parameter where something is changed', async () => {
    const other = await api.createProject('third');
    const answer = api.call(`/v1/jobs?project_id=${other.projectId}`, { body: { job: {} } });
    const [status, { job_id }] = await readJson<{ job_id: string }>(answer);
    expect(status).toBe(201);
    expect((await api.db('job').where({ job_id }).first()).project_id).toBe(api.projectId);
  });
});

describe('a link, in a browser that is signed in', () => {
  async function another(): Promise<{ name: string; link: string; cookie: string }> {
    const body = { name: 'another', scopes: ['admin'], projects: [api.projectId] };
    const [, made] = await readJson<{ key: string }>(api.call('/v1/keys', { body }));
    const headers = { authorization: `Bearer ${made.key}` };
    const [, { url }] = await readJson<{ url: string }>(
      api.call('/v1/login-links', { method: 'POST', headers }),
    );
    return { name: 'another', link: new URL(url).hash.slice(1), cookie: await signIn(made.key) };
  }
  const nameOf = async (cookie: string) =>
    (await readJson<BrowserSession>(withCookie(cookie, '/v1/session')))[1].name;

  test('as another key asks first: who is signed in, and whose link it is; then it works', async () => {
    const cookie = await signIn();
    const { link, name } = await another();
    const [status, problem] = await readJson(open({ code: link }, { cookie }));
    expect([status, problem]).toMatchObject([
      409,
      { code: 'state_conflict', present: { name: await nameOf(cookie) }, link: { name } },
    ]);
    expect(await nameOf(cookie)).not.toBe(name);
    const replaced = await open({ code: link, replace: true }, { cookie });
    expect([replaced.status, await nameOf(cookieOf(replaced))]).toEqual([204, name]);
  });

  test('as the same key, or whose session is over, does not ask', async () => {
    const { link, cookie } = await another();
    expect((await open({ code: link }, { cookie })).status).toBe(204);
    const gone = await signIn();
    expect((await withCookie(gone, '/v1/session', { method: 'DELETE', headers: ownPage })).status).toBe(204);
    expect((await open({ code: (await another()).link }, { cookie: gone })).status).toBe(204);
  });
});
