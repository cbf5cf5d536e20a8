/** Logout tokens of a provider, while the database or the provider's keys are away. */
import { hash, randomUUID } from 'node:crypto';
import { GroupRules } from '@capstan/core/contracts/sign-in';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createOpenIdProvider } from '../../../src/clients/openid-provider.ts';
import { insertProject } from '../../../src/db/access/project.ts';
import { createSignIn, type SignIn } from '../../../src/parts/access/sign-in.ts';
import { newId } from '../../../src/parts/ids.ts';
import { openPersonSession } from '../../../src/use-cases/access/person-session.ts';
import { takeLogout } from '../../../src/use-cases/access/sign-in.ts';
import { useDatabase } from '../../support/database.ts';
import { type ScriptedProvider, startScriptedProvider } from '../../support/scripted-provider.ts';

const { db } = useDatabase();
const rules = GroupRules.parse({ viewers: { role: 'viewer', projects: ['studio'] } });
const clientSecret = 'secret';
let keys: Awaited<ReturnType<typeof generateKeyPair>>;
let provider: ScriptedProvider;
let signIn: SignIn;

beforeAll(async () => {
  keys = await generateKeyPair('RS256');
  provider = await startScriptedProvider();
  const project_id = newId('project');
  await insertProject(db, { project_id, name: 'studio', timezone: 'UTC', daily_limit_nano: 0n });
});
afterAll(() => provider?.close());

async function publishKeys(): Promise<void> {
  const jwk = await exportJWK(keys.publicKey);
  provider.answers.set('/jwks', () => ({ body: { keys: [{ ...jwk, alg: 'RS256', use: 'sig' }] } }));
}

beforeEach(async () => {
  await publishKeys();
  await db('session').delete();
  const who = { issuer: provider.issuer, subject: 'anna', name: 'Anna', email: null, groups: ['viewers'] };
  const identity = { ...who, sid: 'here', idToken: null, refreshToken: null };
  const begun = hash('sha256', randomUUID(), 'buffer');
  await openPersonSession({ db }, { identity, rules, signIn: begun, tokens: Buffer.from('sealed') });
  const client = { clientId: 'capstan', clientSecret, scopes: 'openid', groupsClaim: 'groups' };
  signIn = createSignIn(createOpenIdProvider({ issuer: provider.issuer, ...client }), {
    rules,
    name: 'Example',
    clientSecret,
    recheckS: 60,
  });
});

function aToken(key = keys.privateKey): Promise<string> {
  const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };
  return new SignJWT({ events, sid: 'here' })
    .setProtectedHeader({ alg: 'RS256' })
    .setIssuer(provider.issuer)
    .setAudience('capstan')
    .setSubject('anna')
    .setJti(randomUUID())
    .setIssuedAt()
    .setExpirationTime('2m')
    .sign(key);
}

test('a token is used up by the sessions that it ends, not by a database that fails', async () => {
  const token = await aToken();
  await db.raw('alter table session rename to session_away');
  await expect(takeLogout({ db }, signIn, token)).rejects.toThrow(/session/);
  await db.raw('alter table session_away rename to session');
  expect(await takeLogout({ db }, signIn, token)).toBe(true);
  expect(await db('session')).toEqual([]);
  expect(await takeLogout({ db }, signIn, token)).toBe(false);
});

test.each([
  ['503', { status: 503 }],
  ['no keys', { body: 'none' }],
])('while the provider’s keys cannot be read (%s), no token is refused as wrong', async (_, answer) => {
  const token = await aToken();
  provider.answers.set('/jwks', () => answer);
  await expect(takeLogout({ db }, signIn, token)).rejects.toMatchObject({ code: 'unavailable' });
  await publishKeys();
  expect(await takeLogout({ db }, signIn, token)).toBe(true);
});

test('a token that a stranger has signed ends no session', async () => {
  const { privateKey } = await generateKeyPair('RS256');
  expect(await takeLogout({ db }, signIn, await aToken(privateKey))).toBe(false);
  expect(await db('session')).toHaveLength(1);
});
