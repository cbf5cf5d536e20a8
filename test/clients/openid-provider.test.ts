/** The cause that a refusal shows, by the real library. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createOpenIdProvider } from '../../src/clients/openid-provider.ts';
import { type ScriptedProvider, startScriptedProvider } from '../support/scripted-provider.ts';

const client = { clientId: 'capstan', clientSecret: 'secret', scopes: 'openid', groupsClaim: 'groups' };
const proof = { state: 'state', nonce: 'nonce', verifier: 'verifier' };
const callback = new URL('http://capstan.test/v1/sessions/oidc/callback?code=x&state=state');
let scripted: ScriptedProvider;
beforeAll(async () => {
  scripted = await startScriptedProvider();
});
afterAll(() => scripted?.close());

function finish() {
  return createOpenIdProvider({ issuer: scripted.issuer, ...client }).finish(callback, proof);
}

function part(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

test('why there is no connection', async () => {
  const provider = createOpenIdProvider({ issuer: 'http://127.0.0.1:9', ...client });
  const detail = expect.stringMatching(/^fetch failed: .+/);
  expect(await provider.begin(callback.href)).toEqual({ refused: 'provider_down', detail });
});

test('which claim is wrong', async () => {
  const now = Math.floor(Date.now() / 1_000);
  const claims = { iss: scripted.issuer, sub: 'anna', aud: 'other', nonce: 'nonce', iat: now, exp: now + 60 };
  const id_token = `${part({ alg: 'RS256' })}.${part(claims)}.AA`;
  scripted.answers.set('/token', () => ({ body: { access_token: 'x', token_type: 'bearer', id_token } }));
  const detail = expect.stringMatching(/^unexpected JWT claim value encountered: .*"aud"/);
  expect(await finish()).toEqual({ refused: 'provider_refused', detail });
});

test('which status was not expected', async () => {
  scripted.answers.set('/token', () => ({ status: 418 }));
  const detail = 'unexpected HTTP response status code: 418';
  expect(await finish()).toEqual({ refused: 'provider_refused', detail });
});

test('a refusal is reported in the words of the provider', async () => {
  const body = { error: 'invalid_client', error_description: 'no such client' };
  scripted.answers.set('/token', () => ({ status: 401, body }));
  expect(await finish()).toEqual({ refused: 'provider_refused', detail: 'invalid_client: no such client' });
});
