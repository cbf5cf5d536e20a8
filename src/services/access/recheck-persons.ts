/**
 * Whether people who are signed in may stay: asked of the provider again by what it gave for that. Who is refused there,
 * or is in no group any more, is out; who is in other groups signs in again.
 */
import type { Logger } from 'pino';
import type { OpenIdProvider } from '../../clients/oidc/openid-provider.ts';
import type { GroupRules } from '../../contracts/sign-in.ts';
import { lockKeys } from '../../db/access/key-lineage.ts';
import { findPerson } from '../../db/access/person.ts';
import {
  type DueSession,
  endSessions,
  endSessionsOfPerson,
  keepTokens,
  takeDueSessions,
} from '../../db/access/session-list.ts';
import type { Db } from '../../db/connect.ts';
import { auditIn, keepPerson, resolveGrants } from './person-rights.ts';
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

async function end(db: Db, { session_id, key_id }: DueSession, reason: EndOfStay): Promise<void> {
  await db.transaction(async (trx) => {
    const { projects } = await trx('api_key').where({ key_id }).first('projects');
    const ended =
      reason === 'no group gives a project'
        ? await endSessionsOfPerson(trx, key_id)
        : await endSessions(trx, { projects, sessionId: session_id });
    for (const session of ended)
      await auditIn(trx, session.projects, {
        actor: 'sign-in',
        action: 'session.ended',
        subject: key_id,
        data: { session_id: session.session_id, reason },
      });
  });
}

async function check(dependencies: RecheckDependencies, due: DueSession): Promise<void> {
  const { db, provider, rules, tokens } = dependencies;
  const { refreshToken, idToken = null } = tokens.read(due.tokens) ?? {};
  // Sealed by the client's secret of before: nothing can be asked with it, and so nobody stays by it.
  if (refreshToken === undefined || refreshToken === null)
    return end(db, due, 'the provider does not renew it');
  const { subject } = due;
  const identity = await provider.renew({ subject, idToken, refreshToken });
  if (identity === null) return end(db, due, 'the provider does not renew it');
  await keepTokens(
    db,
    due.session_id,
    tokens.write({ idToken: identity.idToken, refreshToken: identity.refreshToken }),
  );
  const isIn = await db.transaction(async (trx) => {
    await lockKeys(trx);
    const known = await findPerson(trx, due.issuer, subject);
    const grants = await resolveGrants(trx, rules, identity.groups);
    if (known !== null && grants.length > 0) await keepPerson(trx, known, { identity, grants });
    return grants.length > 0;
  });
  if (!isIn) await end(db, due, 'no group gives a project');
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
