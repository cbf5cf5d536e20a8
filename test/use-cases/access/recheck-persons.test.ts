/** Looks at a provider that rotates refresh tokens, fails half-way, or refuses in its own words. */
import { hash, randomUUID } from 'node:crypto';
import { GroupRules } from '@capstan/core/contracts/sign-in';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createOpenIdProvider } from '../../../src/clients/openid-provider.ts';
import { insertProject } from '../../../src/db/access/project.ts';
import { createSealed, type KeptTokens } from '../../../src/parts/access/sign-in.ts';
import { newId } from '../../../src/parts/ids.ts';
import { createPersonChecks, openPersonSession } from '../../../src/use-cases/access/person-session.ts';
import { useDatabase } from '../../support/database.ts';
import {
  type ProviderAnswer,
  type ScriptedProvider,
  startScriptedProvider,
} from '../../support/scripted-provider.ts';

const { db } = useDatabase();
const rules = GroupRules.parse({ viewers: { role: 'viewer', projects: ['studio'] } });
const tokens = createSealed<KeptTokens>('secret', 'tokens');
const subject = 'anna';
let provider: ScriptedProvider;
let current: string;

function refuse(error: string, status = 400): ProviderAnswer {
  return { status, body: { error } };
}

/** Each refresh token is good for one answer. */
function grant(form: URLSearchParams): ProviderAnswer {
  if (form.get('refresh_token') !== current) return refuse('invalid_grant');
  current = randomUUID();
  return { body: { access_token: 'x', token_type: 'bearer', refresh_token: current } };
}

beforeAll(async () => {
  provider = await startScriptedProvider();
  const project_id = newId('project');
  await insertProject(db, { project_id, name: 'studio', timezone: 'UTC', daily_limit_nano: 0n });
});
afterAll(() => provider?.close());

beforeEach(async () => {
  provider.answers.set('/token', grant);
  provider.answers.set('/userinfo', () => ({ body: { sub: subject, groups: ['viewers'] } }));
  await db('session').delete();
  current = randomUUID();
  const who = { issuer: provider.issuer, subject, name: 'Anna', email: null, groups: ['viewers'], sid: null };
  const identity = { ...who, idToken: null, refreshToken: current };
  const signIn = hash('sha256', randomUUID(), 'buffer');
  await openPersonSession({ db }, { identity, rules, signIn, tokens: tokens.write(identity) });
});

/** Asks about every session that was not asked about for so long. */
async function look(recheckS = 0): Promise<void> {
  const client = { clientId: 'capstan', clientSecret: 'secret', scopes: 'openid', groupsClaim: 'groups' };
  const { renew } = createOpenIdProvider({ issuer: provider.issuer, ...client });
  const logger = pino({ level: 'silent' });
  const checks = createPersonChecks({ db, logger }, { provider: { renew }, rules, recheckS, tokens });
  checks.begin();
  await checks.close();
}

async function checkedAt(): Promise<number | undefined> {
  const row = await db('session').first('checked_at');
  return row?.checked_at.getTime();
}

test('a refresh token is kept as soon as it is given, also when the provider then falls silent', async () => {
  provider.answers.delete('/userinfo');
  await look();
  expect(await checkedAt()).toBeDefined();
  provider.answers.set('/userinfo', () => ({ body: { sub: subject, groups: ['viewers'] } }));
  await look();
  expect(await checkedAt()).toBeDefined();
});

test('when a session was checked is when the provider has answered, and one that is silent is asked as rarely', async () => {
  const before = await checkedAt();
  provider.answers.delete('/token');
  await look();
  expect(await checkedAt()).toBe(before);
  provider.answers.set('/token', grant);
  await look(3_600);
  expect(await checkedAt()).toBe(before);
  await look();
  expect(await checkedAt()).toBeGreaterThan(before ?? Number.NaN);
});

function challenge(status: number, error: string): ProviderAnswer {
  return { status, headers: { 'www-authenticate': `Bearer error="${error}"` } };
}

describe('a refusal', () => {
  test.each<[string, '/token' | '/userinfo', ProviderAnswer]>([
    ['the sign-in is over', '/token', refuse('invalid_grant')],
    ['a rule of the provider keeps the person out', '/token', refuse('access_denied', 403)],
    ['the person has to prove more', '/token', refuse('interaction_required')],
    ['the person has to sign in again', '/token', refuse('login_required')],
    ['the new token does not count', '/userinfo', challenge(401, 'invalid_token')],
    ['401 alone', '/userinfo', { status: 401 }],
    ['403 alone', '/userinfo', { status: 403 }],
  ])('ends the session: %s', async (_, place, answer) => {
    provider.answers.set(place, () => answer);
    await look();
    expect(await checkedAt()).toBeUndefined();
  });

  test.each<[string, '/token' | '/userinfo', ProviderAnswer]>([
    ['the client is unknown', '/token', refuse('invalid_client', 401)],
    [
      'the secret is wrong',
      '/token',
      { ...refuse('invalid_client', 401), ...challenge(401, 'invalid_client') },
    ],
    ['the client may not renew', '/token', refuse('unauthorized_client')],
    ['something before the provider refuses', '/token', { status: 403 }],
    ['the provider is busy', '/token', { status: 429 }],
    ['a scope is missing', '/userinfo', challenge(403, 'insufficient_scope')],
    ['it has a fault', '/userinfo', { status: 500 }],
  ])('without proof against the person ends no session: %s', async (_, place, answer) => {
    provider.answers.set(place, () => answer);
    await look();
    expect(await checkedAt()).toBeDefined();
  });
});
