/** Logout tokens of a provider, while the database or the provider's keys are away. */
import { hash, randomUUID } from 'node:crypto';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createOpenIdProvider } from '../../../src/clients/openid-provider.ts';
import { GroupRules } from '../../../src/contracts/sign-in.ts';
import { insertProject } from '../../../src/db/access/project.ts';
import { openPersonSession } from '../../../src/services/access/person-session.ts';
import { createSignInService, type SignInService } from '../../../src/services/access/sign-in.ts';
import { newId } from '../../../src/services/ids.ts';
import { useDatabase } from '../../support/database.ts';
import { type ScriptedProvider, startScriptedProvider } from '../../support/scripted-provider.ts';

const { db } = useDatabase();
const rules = GroupRules.parse({ viewers: { role: 'viewer', projects: ['studio'] } });
const clientSecret = 'secret';
let keys: Awaited<ReturnType<typeof generateKeyPair>>;
let provider: ScriptedProvider;
let service: SignInService;

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
  const signIn = hash('sha256', randomUUID(), 'buffer');
  await openPersonSession(db, { identity, rules, signIn, tokens: Buffer.from('sealed') });
  const client = { clientId: 'capstan', clientSecret, scopes: 'openid', groupsClaim: 'groups' };
  service = createSignInService({
    db,
    provider: createOpenIdProvider({ issuer: provider.issuer, ...client }),
    rules,
    name: 'Example',
    clientSecret,
    publicUrl: () => 'http://capstan.test',
    recheckS: 60,
    logger: pino({ level: 'silent' }),
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
  await expect(service.logout(token)).rejects.toThrow(/session/);
  await db.raw('alter table session_away rename to session');
  expect(await service.logout(token)).toBe(true);
  expect(await db('session')).toEqual([]);
  expect(await service.logout(token)).toBe(false);
});

test.each([
  ['503', { status: 503 }],
  ['no keys', { body: 'none' }],
])('while the provider’s keys cannot be read (%s), nobody says that a token is wrong', async (_, answer) => {
  const token = await aToken();
  provider.answers.set('/jwks', () => answer);
  await expect(service.logout(token)).rejects.toMatchObject({ code: 'unavailable' });
  await publishKeys();
  expect(await service.logout(token)).toBe(true);
});

test('a token that somebody else has signed ends nobody', async () => {
  const { privateKey } = await generateKeyPair('RS256');
  expect(await service.logout(await aToken(privateKey))).toBe(false);
  expect(await db('session')).toHaveLength(1);
});
