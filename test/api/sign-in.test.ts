/** Signing in at a real OpenID provider: who gets in, as what, and how they get out. */

import type { BrowserSession, SessionClosed, SessionList } from '@capstan/core/contracts/sign-in';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import {
  clientSecret,
  createVisitor,
  passProvider,
  startProvider,
  type TestProvider,
  type Visitor,
} from '../support/openid-provider.ts';
import { waitFor } from '../support/wait.ts';

const site = 'http://capstan.test';
const rules = {
  ops: { role: 'admin', projects: ['*'] },
  viewers: { role: 'viewer', projects: ['default'] },
  mixers: { scopes: ['run:read', 'run:write'], projects: ['studio'] },
  lost: { role: 'viewer', projects: ['nowhere'] },
};

let provider: TestProvider;
let api: TestApi;
beforeAll(async () => {
  provider = await startProvider();
  const settings = {
    OIDC_ISSUER: provider.issuer,
    OIDC_CLIENT_ID: 'capstan',
    OIDC_CLIENT_SECRET: clientSecret,
    OIDC_GROUPS: JSON.stringify(rules),
    OIDC_NAME: 'Example',
    OIDC_RECHECK_S: 1,
    MAINTENANCE_MS: 500,
  };
  api = await startTestApi(settings, { keyTrustMs: 0 });
  provider.serve(site, api.url);
  await api.createProject('studio');
});
afterAll(async () => {
  await api?.close();
  await provider?.close();
});

/** The provider is asked about each session once a second: those of earlier tests would be more work than the test. */
afterEach(() => api.db('session').delete());

let people = 0;
function aPerson(...groups: string[]): string {
  const sub = `p${++people}`;
  provider.accounts.set(sub, { name: `Person ${people}`, email: `${sub}@example.org`, groups });
  return sub;
}

function account(sub: string) {
  const found = provider.accounts.get(sub);
  if (found === undefined) throw new Error(`no account ${sub}`);
  return found;
}

function aBrowser(): Visitor {
  return createVisitor({ [site]: api.url });
}

function toPage(url: URL): string {
  return `${url.pathname}${url.search}`;
}

async function come(browser: Visitor, callback: URL): Promise<string> {
  const { url } = await browser.follow(callback, {}, () => true);
  return toPage(url);
}

/** @returns the page that the browser is led to in the end */
async function signIn(browser: Visitor, sub: string): Promise<string> {
  return come(browser, await passProvider(browser, new URL(`${site}/v1/sessions/oidc`), sub));
}

async function signedIn(sub: string): Promise<Visitor> {
  const browser = aBrowser();
  expect(await signIn(browser, sub)).toBe('/ui/login?signed_in=true');
  return browser;
}

const ownPage = { 'x-capstan-console': '1', 'sec-fetch-site': 'same-origin' };

function ask(browser: Visitor, path: string, init: RequestInit = {}): Promise<Response> {
  const isJson = typeof init.body === 'string';
  return browser.ask(new URL(path, site), {
    ...init,
    headers: { ...ownPage, ...(isJson ? { 'content-type': 'application/json' } : {}), ...init.headers },
  });
}

function session(browser: Visitor, project?: string): Promise<[number, BrowserSession]> {
  return readJson(
    ask(browser, '/v1/session', project === undefined ? {} : { headers: { 'x-project-id': project } }),
  );
}

function idOf(sub: string): string {
  return `user:${sub}@example.org`;
}

async function audited(action: string, subject: string) {
  const rows = await api.db('audit').where({ action, subject }).orderBy('entry');
  return rows.map(({ actor, data }) => ({ actor, data }));
}

describe('two roles', () => {
  test('an admin does everything, and is named in what was done', async () => {
    const sub = aPerson('ops', 'other');
    const browser = await signedIn(sub);
    expect(await session(browser)).toMatchObject([
      200,
      {
        key_id: idOf(sub),
        name: account(sub).name,
        person: { email: `${sub}@example.org` },
        scopes: ['admin'],
      },
    ]);
    const body = JSON.stringify({ name: 'made', scopes: ['run:read'], projects: [api.projectId] });
    const [status, made] = await readJson<{ key_id: string }>(
      ask(browser, '/v1/keys', { method: 'POST', body }),
    );
    expect(status).toBe(201);
    expect(await audited('key.created', made.key_id)).toMatchObject([{ actor: idOf(sub) }]);
    expect(await audited('session.opened', idOf(sub))).toMatchObject([
      { actor: idOf(sub) },
      { actor: idOf(sub) },
    ]);
  });

  test('a viewer reads, and changes nothing', async () => {
    const browser = await signedIn(aPerson('viewers'));
    expect((await ask(browser, '/v1/runs')).status).toBe(200);
    const refused = await readJson(ask(browser, '/v1/jobs', { method: 'POST', body: '{"job":{}}' }));
    expect(refused).toMatchObject([403, { code: 'forbidden' }]);
    expect((await ask(browser, '/v1/keys')).status).toBe(403);
  });

  test('is in each project what their groups give there, and no more', async () => {
    const browser = await signedIn(aPerson('viewers', 'mixers'));
    const [, first] = await session(browser);
    expect(first.projects.map(({ name }) => name).sort()).toEqual(['default', 'studio']);
    const studio = first.projects.find(({ name }) => name === 'studio')?.project_id ?? '';
    const post = (project: string) =>
      ask(browser, '/v1/jobs', { method: 'POST', body: '{"job":{}}', headers: { 'x-project-id': project } });
    expect((await post(studio)).status).toBe(201);
    expect((await post(api.projectId)).status).toBe(403);
    expect((await session(browser, studio))[1].scopes).toEqual(['run:read', 'run:write']);
  });

  test('an operator of all projects has access to projects that are made later', async () => {
    const browser = await signedIn(aPerson('ops'));
    const { projectId } = await api.createProject('later');
    const [, { projects }] = await session(browser);
    expect(projects.map(({ project_id }) => project_id)).toContain(projectId);
  });
});

describe('a person is refused', () => {
  async function begin(): Promise<[Visitor, URL]> {
    const browser = aBrowser();
    return [browser, await passProvider(browser, new URL(`${site}/v1/sessions/oidc`), aPerson('viewers'))];
  }

  test('without a group that gives something', async () => {
    const sub = aPerson('elsewhere', 'lost');
    expect(await signIn(aBrowser(), sub)).toBe('/ui/login?refused=no_group');
    const data = { reason: 'no_group', email: `${sub}@example.org`, groups: ['elsewhere', 'lost'] };
    expect(await audited('session.refused', sub)).toMatchObject([{ actor: 'sign-in', data }]);
  });

  test('by an answer of another sign-in', async () => {
    const [browser, callback] = await begin();
    callback.searchParams.set('state', 'other');
    expect(await come(browser, callback)).toBe('/ui/login?refused=mismatch');
    expect(browser.cookies.get('capstan.test')?.has('capstan_session')).toBe(false);
  });

  test('in a browser that began nothing', async () => {
    const [, callback] = await begin();
    expect(await come(aBrowser(), callback)).toBe('/ui/login?refused=mismatch');
  });

  test('twice by one sign-in', async () => {
    const [browser, callback] = await begin();
    const jar = browser.cookies.get('capstan.test');
    const kept = jar?.get('capstan_sign_in') ?? '';
    expect(await come(browser, callback)).toBe('/ui/login?signed_in=true');
    expect(jar?.has('capstan_sign_in')).toBe(false);
    jar?.set('capstan_sign_in', kept);
    expect(await come(browser, callback)).toMatch(/refused=(used|provider_refused)$/);
  });

  test('by the provider', async () => {
    const [browser, callback] = await begin();
    callback.searchParams.delete('code');
    callback.searchParams.set('error', 'access_denied');
    expect(await come(browser, callback)).toBe('/ui/login?refused=provider_refused');
  });

  test('whose key was revoked here', async () => {
    const sub = aPerson('viewers');
    const browser = await signedIn(sub);
    expect((await api.call(`/v1/keys/${encodeURIComponent(idOf(sub))}`, { method: 'DELETE' })).status).toBe(
      200,
    );
    expect((await ask(browser, '/v1/runs')).status).toBe(401);
    expect(await signIn(aBrowser(), sub)).toBe('/ui/login?refused=revoked');
  });

  test('the cookie of a sign-in goes along when the browser comes back, and only to us', async () => {
    const answer = await aBrowser().ask(new URL('/v1/sessions/oidc', site));
    expect(answer.headers.get('set-cookie')).toMatch(
      /^capstan_sign_in=[\w-]+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/,
    );
    const { searchParams } = new URL(answer.headers.get('location') ?? '');
    expect(Object.fromEntries(searchParams)).toMatchObject({
      code_challenge_method: 'S256',
      response_type: 'code',
    });
    expect(searchParams.get('nonce')).not.toBe(searchParams.get('state'));
  });
});

describe('a person is signed out', () => {
  async function open(browser: Visitor) {
    const stream = await ask(browser, '/v1/stream?topics=runs', { headers: { accept: 'text/event-stream' } });
    expect(stream.status).toBe(200);
    let isCut = false;
    const cut = (): void => {
      isCut = true;
    };
    stream.text().then(cut, cut);
    return () => isCut;
  }

  async function expectOut(browser: Visitor, isCut: () => boolean): Promise<void> {
    await waitFor('the stream to be cut', isCut);
    await waitFor('the refusal', async () => (await ask(browser, '/v1/runs')).status === 401);
  }

  test('whose sessions an administrator ends, by id, e-mail address or subject', async () => {
    const sub = aPerson('viewers');
    const browsers = [await signedIn(sub), await signedIn(sub)] as const;
    const cuts = [await open(browsers[0]), await open(browsers[1])] as const;
    const email = `${sub}@EXAMPLE.org`;
    // Who is listed for a user is who is ended.
    for (const user of [idOf(sub), email, sub]) {
      const path = `/v1/sessions?user=${encodeURIComponent(user)}`;
      const [, { items }] = await readJson<SessionList>(api.call(path));
      expect(items).toMatchObject([{ key_id: idOf(sub) }, { key_id: idOf(sub) }]);
    }
    const revoked = readJson(api.call('/v1/sessions/revoke', { body: { user: email } }));
    expect(await revoked).toEqual([200, { revoked: 2 }]);
    await expectOut(browsers[0], cuts[0]);
    await expectOut(browsers[1], cuts[1]);
    expect(await signIn(browsers[0], sub)).toBe('/ui/login?signed_in=true');
  });

  test('after a sign-out at the provider', async () => {
    const sub = aPerson('viewers');
    const browser = await signedIn(sub);
    const isCut = await open(browser);
    const end = new URL('/session/end', provider.issuer);
    const page = await browser.follow(end, {}, () => false);
    const xsrf = /name="xsrf" value="([^"]+)"/.exec(await page.answer.text())?.[1] ?? '';
    const body = new URLSearchParams({ xsrf, logout: 'yes' });
    await browser.follow(
      new URL('/session/end/confirm', provider.issuer),
      { method: 'POST', body },
      () => false,
    );
    await expectOut(browser, isCut);
    expect(await audited('session.ended', idOf(sub))).toMatchObject([
      { actor: 'sign-in', data: { reason: 'the provider has signed out' } },
    ]);
  });

  test('whom the provider does not know any more', async () => {
    const sub = aPerson('viewers');
    const browser = await signedIn(sub);
    const isCut = await open(browser);
    account(sub).isGone = true;
    await expectOut(browser, isCut);
  });

  test('without a group left, and returns with the rights of new groups', async () => {
    const sub = aPerson('ops');
    const browser = await signedIn(sub);
    const isCut = await open(browser);
    const key = { name: 'made', scopes: ['run:write'], projects: [api.projectId] };
    const [, made] = await readJson<{ key: string }>(
      ask(browser, '/v1/keys', { method: 'POST', body: JSON.stringify(key) }),
    );
    account(sub).groups = ['viewers'];
    await expectOut(browser, isCut);
    const headers = { authorization: `Bearer ${made.key}` };
    expect((await api.call('/v1/runs', { headers })).status).toBe(401);
    expect(await signIn(browser, sub)).toBe('/ui/login?signed_in=true');
    expect((await ask(browser, '/v1/keys')).status).toBe(403);
    account(sub).groups = [];
    await waitFor('the refusal', async () => (await ask(browser, '/v1/runs')).status === 401);
  });
});

test('a checked person without changes stays signed in', async () => {
  const sub = aPerson('viewers');
  const browser = await signedIn(sub);
  const checked = async () =>
    (
      await api
        .db('session')
        .where({ key_id: idOf(sub) })
        .first()
    ).checked_at.getTime();
  const first = await checked();
  await waitFor('two looks', async () => (await checked()) > first + 1_500);
  expect((await ask(browser, '/v1/runs')).status).toBe(200);
});

test('signing out leads to the sign-out page of the provider', async () => {
  const sub = aPerson('viewers');
  const browser = await signedIn(sub);
  const [status, { provider_url }] = await readJson<SessionClosed>(
    ask(browser, '/v1/session', { method: 'DELETE' }),
  );
  expect(status).toBe(200);
  const url = new URL(provider_url);
  expect(url.origin).toBe(provider.issuer);
  expect(url.searchParams.get('post_logout_redirect_uri')).toBe(`${site}/ui/login`);
  expect((await ask(browser, '/v1/runs')).status).toBe(401);
  const page = await browser.follow(url, {}, () => false);
  expect(page.answer.status).toBe(200);
});

test('a logout token that the provider did not sign ends no session', async () => {
  const headers = { 'content-type': 'application/x-www-form-urlencoded', authorization: '' };
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const now = Math.floor(Date.now() / 1_000);
  const claims = {
    iss: provider.issuer,
    aud: 'capstan',
    iat: now,
    exp: now + 60,
    jti: 'x',
    sub: 'p1',
    events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
  };
  for (const token of [
    'x',
    `${part({ alg: 'none' })}.${part(claims)}.`,
    `${part({ alg: 'HS256' })}.${part(claims)}.AA`,
  ]) {
    const answer = await api.call('/v1/sessions/oidc/logout', { headers, body: `logout_token=${token}` });
    expect(answer.status).toBe(400);
  }
});

test('people make no login links, and have no secret to renew', async () => {
  const sub = aPerson('ops');
  const browser = await signedIn(sub);
  expect((await ask(browser, '/v1/login-links', { method: 'POST' })).status).toBe(403);
  const path = `/v1/keys/${encodeURIComponent(idOf(sub))}/rotate`;
  expect((await ask(browser, path, { method: 'POST', body: '{}' })).status).toBe(404);
});

test('neither tokens nor codes are in the database or the log', async () => {
  const browser = await signedIn(aPerson('viewers'));
  const rows = await api.db('session').whereNotNull('tokens');
  expect(rows.length).toBeGreaterThan(0);
  for (const { tokens } of rows) expect(tokens.toString('latin1')).not.toMatch(/refreshToken|eyJ/);
  expect(api.log.join('')).not.toMatch(/code=|refresh_token/);
  expect((await ask(browser, '/v1/runs')).status).toBe(200);
});

// Without a provider: session.test.ts.
test('the offer names the provider, and where to go', async () => {
  expect(await readJson(api.call('/v1/sign-in'))).toEqual([
    200,
    { oidc: { name: 'Example', url: '/v1/sessions/oidc' } },
  ]);
});

test('while the provider is down, a key still signs in', async () => {
  const down = await startTestApi({
    OIDC_ISSUER: 'http://127.0.0.1:9',
    OIDC_CLIENT_ID: 'capstan',
    OIDC_CLIENT_SECRET: clientSecret,
    OIDC_GROUPS: JSON.stringify(rules),
  });
  const answer = await down.call('/v1/sessions/oidc', { headers: { authorization: '' } });
  expect([answer.status, answer.headers.get('location')]).toEqual([302, '/ui/login?refused=provider_down']);
  expect((await down.call('/v1/session', { body: { key: down.apiKey } })).status).toBe(204);
  await down.close();
});
