/**
 * Sessions as an administrator sees and ends them: those whose key or person shares a project with the caller, as it is
 * with keys (K3).
 */
import type { SessionQuery } from '../../contracts/session.ts';
import type { EndedSession } from '../../db/access/session.ts';
import { endSessions, listSessions, type SessionRow } from '../../db/access/session-list.ts';
import type { Db } from '../../db/connect.ts';
import { AppError } from '../../errors/app-error.ts';
import { decodeCursor, toPage } from '../cursor.ts';
import { type Caller, isOperator } from './caller.ts';
import { auditIn } from './person-rights.ts';

/** Those of a user (id, e-mail address or subject), or the one of an id. */
export type WhichSessions = { readonly user: string } | { readonly sessionId: string };

function toEntry({ created_at, expires_at, checked_at, scopes: _, ...row }: SessionRow) {
  return {
    ...row,
    opened_at: created_at.toISOString(),
    expires_at: expires_at.toISOString(),
    checked_at: checked_at?.toISOString() ?? null,
  };
}

export async function listSessionsOf(db: Db, { projects }: Caller, { limit, cursor, user }: SessionQuery) {
  const after = cursor === undefined ? null : decodeCursor(cursor);
  const rows = await listSessions(db, { projects, user, after, limit: limit + 1 });
  return toPage(rows, limit, { key: (row) => row.session_id, item: toEntry });
}

/** @returns those that have ended by it. @throws AppError `forbidden` for an operator's by who is none */
export function revokeSessions(
  db: Db,
  caller: Caller,
  which: WhichSessions,
): Promise<readonly EndedSession[]> {
  return db.transaction(async (trx) => {
    const ended = await endSessions(trx, { projects: caller.projects, ...which });
    const foreign = ended.find(({ scopes }) => scopes.includes('operator'));
    if (foreign !== undefined && !isOperator(caller))
      throw new AppError(
        'forbidden',
        `${foreign.key_id} has the scope operator; only who has it ends its sessions`,
      );
    for (const { session_id, key_id, projects } of ended)
      await auditIn(trx, projects, {
        actor: caller.key_id,
        action: 'session.revoked',
        subject: key_id,
        data: { session_id },
      });
    return ended;
  });
}
