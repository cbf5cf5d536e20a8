/**
 * Opens the session of a person, or refuses it with a reason. The session lasts only while the provider and the
 * person's groups allow it. The provider's tokens for these checks are stored sealed: only a holder of the secret can
 * read or make them.
 */

import { sessionHours } from '@capstan/core/contracts/limits';
import type { Grant, GroupRules, SignInRefused } from '@capstan/core/contracts/sign-in';
import type { Identity } from '../../clients/openid-claims.ts';
import type { OpenIdProvider } from '../../clients/openid-provider.ts';
import type { Ctx } from '../../context.ts';
import { findPerson, type PersonRow } from '../../db/access/person.ts';
import {
  type DueSession,
  type EndedSession,
  endSessions,
  insertSession,
  keepChecked,
  keepTokens,
  takeDueSessions,
} from '../../db/access/session.ts';
import type { Db } from '../../db/connect.ts';
import { takeLock } from '../../db/locks.ts';
import type { KeptTokens, Sealed } from '../../parts/access/sign-in.ts';
import { newId } from '../../parts/ids.ts';
import { digestOf, randomSecret } from './key-text.ts';
import { auditIn, dropPerson, keepPerson, resolveGrants } from './person-rights.ts';

interface PersonSignIn {
  readonly identity: Identity;
  readonly rules: GroupRules;
  /** Digest of the sign-in. */
  readonly signIn: Buffer;
  /** Sealed. */
  readonly tokens: Buffer;
}

/** The most groups of a person in a log line or audit entry. */
const shownGroups = 50;

async function refuse(trx: Db, { identity }: PersonSignIn, why: SignInRefused): Promise<SignInRefused> {
  const { issuer, subject, email, groups } = identity;
  const data = { reason: why.refused, issuer, email, groups: groups.slice(0, shownGroups) };
  const entry = { actor: 'sign-in', action: 'session.refused', subject: subject.slice(0, 128), data };
  await auditIn(trx, [], entry);
  return why;
}

/** Finds the person's rights, or the reason why they have none. */
async function judge(
  trx: Db,
  known: PersonRow | null,
  { identity, rules }: PersonSignIn,
): Promise<readonly Grant[] | SignInRefused> {
  if (known !== null && known.revoked_at !== null)
    return { refused: 'revoked', detail: `${known.key_id} was revoked here` };
  const grants = await resolveGrants(trx, rules, identity.groups);
  if (grants.length > 0) return grants;
  if (known !== null) await dropPerson(trx, known);
  const groups = identity.groups.slice(0, shownGroups).join(', ') || 'none';
  return { refused: 'no_group', detail: `groups at the provider: ${groups}; none of them gives a project` };
}

/** Null: the sign-in has opened a session before. */
async function open(
  trx: Db,
  key_id: string,
  { identity, signIn, tokens }: PersonSignIn,
): Promise<string | null> {
  const secret = `ses_${randomSecret()}`;
  const session_id = newId('session');
  const isRenewed = identity.refreshToken !== null;
  const isNew = await insertSession(trx, {
    session_id,
    secret_sha256: digestOf(secret),
    keyId: key_id,
    hours: sessionHours,
    provider: { signIn, sid: identity.sid, tokens, isRenewed },
  });
  if (!isNew) return null;
  const data = { session_id, email: identity.email };
  const { projects } = await trx('api_key').where({ key_id }).first('projects');
  await auditIn(trx, projects, { actor: key_id, action: 'session.opened', subject: key_id, data });
  return secret;
}

/** @returns the session's secret */
export function openPersonSession(
  { db }: Pick<Ctx, 'db'>,
  signIn: PersonSignIn,
): Promise<{ readonly secret: string } | SignInRefused> {
  const { identity } = signIn;
  return db.transaction(async (trx) => {
    await takeLock(trx, 'keys');
    const known = await findPerson(trx, identity.issuer, identity.subject);
    const grants = await judge(trx, known, signIn);
    if ('refused' in grants) return refuse(trx, signIn, grants);
    const key_id = await keepPerson(trx, known, { identity, grants });
    const secret = await open(trx, key_id, signIn);
    if (secret !== null) return { secret };
    return { refused: 'used', detail: 'the sign-in has opened a session before' };
  });
}

/** How the provider is asked again, and how often. */
interface Recheck {
  readonly provider: Pick<OpenIdProvider, 'renew'>;
  readonly rules: GroupRules;
  /** How long a session lasts without asking the provider. */
  readonly recheckS: number;
  readonly tokens: Sealed<KeptTokens>;
}

/** The most sessions that are checked in parallel. */
const atOnce = 20;

type EndOfStay = 'the provider does not renew it' | 'no group gives a project';

async function auditEnds(trx: Db, ended: readonly EndedSession[], reason: EndOfStay): Promise<void> {
  for (const { session_id, key_id, projects } of ended)
    await auditIn(trx, projects, {
      actor: 'sign-in',
      action: 'session.ended',
      subject: key_id,
      data: { session_id, reason },
    });
}

async function end(db: Db, { session_id, key_id }: DueSession): Promise<void> {
  await db.transaction(async (trx) => {
    const { projects } = await trx('api_key').where({ key_id }).first('projects');
    const ended = await endSessions(trx, { projects, sessionId: session_id });
    await auditEnds(trx, ended, 'the provider does not renew it');
  });
}

async function keepAnswer(
  db: Db,
  { issuer, subject, session_id }: DueSession,
  { identity, rules }: Pick<PersonSignIn, 'identity' | 'rules'>,
): Promise<void> {
  await db.transaction(async (trx) => {
    await takeLock(trx, 'keys');
    const known = await findPerson(trx, issuer, subject);
    if (known === null) return;
    const grants = await resolveGrants(trx, rules, identity.groups);
    if (grants.length === 0) return auditEnds(trx, await dropPerson(trx, known), 'no group gives a project');
    await keepPerson(trx, known, { identity, grants });
    await keepChecked(trx, session_id);
  });
}

async function check(db: Db, { provider, rules, tokens }: Recheck, due: DueSession): Promise<void> {
  const { refreshToken, idToken = null } = tokens.read(due.tokens) ?? {};
  // Sealed with a former client secret: the provider cannot be asked with it, so the session ends.
  if (refreshToken === undefined || refreshToken === null) return end(db, due);
  const renewal = await provider.renew({ subject: due.subject, idToken, refreshToken });
  if (renewal === null) return end(db, due);
  await keepTokens(db, due.session_id, tokens.write(renewal.tokens));
  const identity = await renewal.identify();
  await (identity === null ? end(db, due) : keepAnswer(db, due, { identity, rules }));
}

/**
 * Asks the provider, with its tokens, whether signed-in people may stay. A person whom it refuses, or who is in no
 * group any more, is signed out; a person with other groups has to sign in again.
 */
export function createPersonChecks({ db, logger }: Pick<Ctx, 'db' | 'logger'>, recheck: Recheck) {
  let going: Promise<void> | null = null;
  const round = async (): Promise<void> => {
    const due = await takeDueSessions(db, { seconds: recheck.recheckS, limit: atOnce });
    await Promise.all(
      due.map((session) =>
        check(db, recheck, session).catch((err: unknown) =>
          logger.warn(
            { err, session_id: session.session_id },
            'the identity provider did not answer about a session',
          ),
        ),
      ),
    );
  };
  return {
    /** Begins the checks that are due; it does not wait for the answers. */
    begin: (): void => {
      going ??= round()
        .catch((err: unknown) => logger.warn({ err }, 'sessions could not be read'))
        .finally(() => {
          going = null;
        });
    },
    close: async (): Promise<void> => {
      await going;
    },
  };
}

export type PersonChecks = ReturnType<typeof createPersonChecks>;
