/**
 * Whether people who are signed in may stay: asked of the provider again by what it gave for that. Who is refused there,
 * or is in no group any more, is out; who is in other groups signs in again.
 */
import type { Logger } from 'pino';
import type { Identity } from '../../clients/oidc/identity.ts';
import type { OpenIdProvider } from '../../clients/oidc/openid-provider.ts';
import type { GroupRules } from '../../contracts/sign-in.ts';
import { lockKeys } from '../../db/access/key-lineage.ts';
import { findPerson } from '../../db/access/person.ts';
import type { EndedSession } from '../../db/access/session.ts';
import {
  type DueSession,
  endSessions,
  keepChecked,
  keepTokens,
  takeDueSessions,
} from '../../db/access/session-list.ts';
import type { Db } from '../../db/connect.ts';
import { auditIn, dropPerson, keepPerson, resolveGrants } from './person-rights.ts';
import type { KeptTokens, Sealed } from './sealed.ts';

interface RecheckDependencies {
  readonly db: Db;
  readonly provider: Pick<OpenIdProvider, 'renew'>;
  readonly rules: GroupRules;
  readonly recheckS: number;
  readonly logger: Logger;
  readonly tokens: Sealed<KeptTokens>;
}

/** Of one round. */
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
  { db, rules }: RecheckDependencies,
  { issuer, subject, session_id }: DueSession,
  identity: Identity,
): Promise<void> {
  await db.transaction(async (trx) => {
    await lockKeys(trx);
    const known = await findPerson(trx, issuer, subject);
    if (known === null) return;
    const grants = await resolveGrants(trx, rules, identity.groups);
    if (grants.length === 0) return auditEnds(trx, await dropPerson(trx, known), 'no group gives a project');
    await keepPerson(trx, known, { identity, grants });
    await keepChecked(trx, session_id);
  });
}

async function check(dependencies: RecheckDependencies, due: DueSession): Promise<void> {
  const { db, provider, tokens } = dependencies;
  const { refreshToken, idToken = null } = tokens.read(due.tokens) ?? {};
  // Sealed by the client's secret of before: nothing can be asked with it, and so nobody stays by it.
  if (refreshToken === undefined || refreshToken === null) return end(db, due);
  const renewal = await provider.renew({ subject: due.subject, idToken, refreshToken });
  if (renewal === null) return end(db, due);
  await keepTokens(db, due.session_id, tokens.write(renewal.tokens));
  const identity = await renewal.identify();
  await (identity === null ? end(db, due) : keepAnswer(dependencies, due, identity));
}

export function createPersonChecks(dependencies: RecheckDependencies) {
  const { db, recheckS, logger } = dependencies;
  let going: Promise<void> | null = null;
  const round = async (): Promise<void> => {
    const due = await takeDueSessions(db, { seconds: recheckS, limit: atOnce });
    await Promise.all(
      due.map((session) =>
        check(dependencies, session).catch((err: unknown) =>
          logger.warn(
            { err, session_id: session.session_id },
            'the provider could not be asked about a session',
          ),
        ),
      ),
    );
  };
  return {
    begin: (): void => {
      going ??= round()
        .catch((err: unknown) => logger.warn({ err }, 'sessions could not be looked up'))
        .finally(() => {
          going = null;
        });
    },
    settled: async (): Promise<void> => {
      await going;
    },
  };
}
