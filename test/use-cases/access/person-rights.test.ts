/** What people hold when their groups change: by a sign-in, and by a look at a provider that the test speaks for. */
import { hash, randomUUID } from 'node:crypto';
import { GroupRules } from '@capstan/core/contracts/sign-in';
import { pino } from 'pino';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Identity } from '../../../src/clients/openid-claims.ts';
import type { OpenIdProvider } from '../../../src/clients/openid-provider.ts';
import { insertProject } from '../../../src/db/access/project.ts';
import { createSealed, type KeptTokens } from '../../../src/parts/access/sign-in.ts';
import { createVerifiedKeys } from '../../../src/parts/access/verified-keys.ts';
import { newId } from '../../../src/parts/ids.ts';
import { type Caller, selectProject } from '../../../src/use-cases/access/caller.ts';
import { identify } from '../../../src/use-cases/access/identification.ts';
import { createKey, revokeKey } from '../../../src/use-cases/access/keys.ts';
import { createPersonChecks, openPersonSession } from '../../../src/use-cases/access/person-session.ts';
import { useDatabase } from '../../support/database.ts';

const { db } = useDatabase();
const projectId = newId('project');
const rules = GroupRules.parse({
  admins: { role: 'admin', projects: ['studio'] },
  editors: { role: 'editor', projects: ['studio'] },
});
const config = { CAPSTAN_MODE: 'development' } as const;
const ctx = { db, config, verifiedKeys: createVerifiedKeys(60_000) };
const tokens = createSealed<KeptTokens>('secret', 'tokens');

beforeAll(async () => {
  await insertProject(db, { project_id: projectId, name: 'studio', timezone: 'UTC', daily_limit_nano: 0n });
});
beforeEach(() => db('session').delete());

let people = 0;
function aPerson(): Identity {
  const subject = `p${++people}`;
  const who = { issuer: 'http://id.test', subject, name: subject, email: `${subject}@example.org` };
  return { ...who, groups: ['admins'], sid: null, idToken: null, refreshToken: 'first' };
}

function idOf({ email }: Identity): string {
  return `user:${email}`;
}

function signIn(identity: Identity) {
  const signIn = hash('sha256', randomUUID(), 'buffer');
  return openPersonSession({ db }, { identity, rules, signIn, tokens: tokens.write(identity) });
}

/** As a process knows the person that has answered them lately. */
async function aCaller(identity: Identity): Promise<Caller> {
  const opened = await signIn(identity);
  const holder = 'secret' in opened ? await identify(ctx, opened.secret) : null;
  if (holder === null) throw new Error(`${idOf(identity)} was not signed in`);
  return selectProject(holder, projectId);
}

function makeKey(caller: Caller, scope: 'admin' | 'run:read' | 'run:write') {
  return createKey(ctx, caller, { name: 'made', scopes: [scope], projects: [projectId] });
}

/** Asks about every session, once. */
async function look(renew: OpenIdProvider['renew']): Promise<void> {
  const logger = pino({ level: 'silent' });
  const checks = createPersonChecks({ db, logger }, { provider: { renew }, rules, recheckS: 0, tokens });
  checks.begin();
  await checks.close();
}

async function liveKeysOf(identity: Identity): Promise<readonly string[]> {
  const rows = await db('api_key').where({ created_by: idOf(identity), revoked_at: null });
  return rows.map(({ scopes }) => scopes.join());
}

describe('a person who was an admin until recently', () => {
  test.each([['editors'], []])(
    'makes no key by what a process still believes, now in %s',
    async (...groups) => {
      const person = aPerson();
      const caller = await aCaller(person);
      await signIn({ ...person, groups });
      await expect(makeKey(caller, 'admin')).rejects.toMatchObject({ code: 'forbidden' });
      await expect(makeKey(caller, 'run:read')).rejects.toMatchObject({ code: 'forbidden' });
      expect(await liveKeysOf(person)).toEqual([]);
    },
  );

  test('makes keys while they are one', async () => {
    const person = aPerson();
    const caller = await aCaller(person);
    await signIn(person);
    await makeKey(caller, 'run:read');
    expect(await liveKeysOf(person)).toEqual(['run:read']);
  });
});

describe('a person who loses groups', () => {
  const ways = {
    'a sign-in': signIn,
    'a look': (now: Identity) => look(async () => ({ tokens: now, identify: async () => now })),
  };

  test.each([
    ['a sign-in', ['editors'], ['run:write']],
    ['a look', ['editors'], ['run:write']],
    ['a sign-in', [], []],
    ['a look', [], []],
  ] as const)('by %s, now in %j, keeps the keys %j', async (way, groups, kept) => {
    const person = aPerson();
    const caller = await aCaller(person);
    await makeKey(caller, 'admin');
    await makeKey(caller, 'run:write');
    await ways[way]({ ...person, groups });
    expect(await liveKeysOf(person)).toEqual(kept);
    expect(await db('session').where({ key_id: idOf(person) })).toHaveLength(
      way === 'a look' || groups.length === 0 ? 0 : 1,
    );
    const changes = await db('audit').where({ action: 'person.changed', subject: idOf(person) });
    expect(changes).toMatchObject([
      { project_id: projectId, data: { grants: groups.map(() => ({ projects: [projectId] })) } },
    ]);
  });

  test('is recorded once, and comes back with a group, without the keys from before', async () => {
    const person = aPerson();
    await makeKey(await aCaller(person), 'run:read');
    await signIn({ ...person, groups: [] });
    await signIn({ ...person, groups: [] });
    expect(await db('audit').where({ action: 'person.changed', subject: idOf(person) })).toHaveLength(1);
    expect(await signIn(person)).toHaveProperty('secret');
    expect(await liveKeysOf(person)).toEqual([]);
  });

  test('can still be revoked by an administrator of what was theirs', async () => {
    const person = aPerson();
    const admin = await aCaller(aPerson());
    await signIn(person);
    await signIn({ ...person, groups: [] });
    await revokeKey(ctx, admin, idOf(person));
    expect(await signIn(person)).toMatchObject({ refused: 'revoked' });
  });
});

test('keys that a person made work on when their sessions end', async () => {
  const person = aPerson();
  await makeKey(await aCaller(person), 'run:read');
  await look(async () => null);
  expect(await db('session').where({ key_id: idOf(person) })).toEqual([]);
  expect(await liveKeysOf(person)).toEqual(['run:read']);
});
