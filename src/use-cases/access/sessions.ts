/**
 * Browser sessions. S1: a session has the rights of its key, never more. S2: it ends after 12 hours, and with its key:
 * when the key is revoked or expires, or when its secret was renewed and the former one ends, if the former one opened
 * the session; such a session creates no links. S3: the session does not keep what opened it (a key, or a code of one
 * use and 10 minutes), and the database holds digests only. S4: an administrator sees and ends the sessions whose key
 * or person shares a project with them, as with keys (K3).
 */

import { loginCodeMinutes, sessionHours } from '@capstan/core/contracts/limits';
import type { Json } from '@capstan/core/contracts/primitives';
import type { LoginLink, SessionQuery, SessionRequest } from '@capstan/core/contracts/sign-in';
import { AppError } from '@capstan/core/errors/app-error';
import type { Ctx, ServerCtx } from '../../context.ts';
import { findLiveKey } from '../../db/access/api-key.ts';
import { insertAudits } from '../../db/access/audit.ts';
import { findEmail } from '../../db/access/person.ts';
import { listProjects } from '../../db/access/project.ts';
import {
  deleteSession,
  type EndedSession,
  endSessions,
  findSessionHolder,
  insertLoginCode,
  insertSession,
  listSessions,
  type SessionRow,
  useLoginCode,
} from '../../db/access/session.ts';
import type { Db } from '../../db/connect.ts';
import { forgetKeys, forgetText, type KeyHolder } from '../../parts/access/verified-keys.ts';
import { newId } from '../../parts/ids.ts';
import { decodeCursor, toPage } from '../cursor.ts';
import { type Caller, isOperator, isPersonId } from './caller.ts';
import type { KeyCtx } from './identification.ts';
import { digestOf, isSessionText, randomSecret, verifyKey } from './key-text.ts';
import { auditIn } from './person-rights.ts';

type Opener = Pick<KeyHolder, 'key_id' | 'projects' | 'shown'>;

async function findOpener(trx: Db, request: SessionRequest): Promise<Opener | null> {
  return request.code === undefined ? verifyKey(trx, request.key) : useLoginCode(trx, digestOf(request.code));
}

function auditOf({ key_id, projects }: Opener, action: string) {
  return projects.map((project_id) => ({ actor: key_id, action, subject: key_id, project_id, data: {} }));
}

interface SessionOpening {
  /** The browser's current session, by its secret. */
  readonly present?: string | null;
  /** Called with the key before anything is written; if it throws, a code stays unused. */
  readonly admit?: (keyId: string) => void;
}

async function nameOf(db: Db, keyId: string): Promise<Json> {
  return { key_id: keyId, name: (await findLiveKey(db, keyId))?.name ?? keyId };
}

/**
 * Refuses to replace a session by a link: the link's author could send it to a signed-in person, who would then work
 * under another key without noticing.
 *
 * @throws AppError `state_conflict`, which names the current session's holder and the link's
 */
async function refuseReplacing(trx: Db, opener: Opener, present: string): Promise<void> {
  if (!isSessionText(present)) return;
  const holder = await findSessionHolder(trx, digestOf(present));
  if (holder === null || holder.key_id === opener.key_id) return;
  const details = { present: await nameOf(trx, holder.key_id), link: await nameOf(trx, opener.key_id) };
  const message = `the browser is signed in as ${holder.key_id}, the link signs it in as ${opener.key_id}; send replace: true to do so`;
  throw new AppError('state_conflict', message, { details });
}

/**
 * @returns the secret of the new session; null when the key or code is wrong, used or expired
 * @throws AppError `state_conflict` where a code would replace the session of another key without `replace`
 */
export function openSession(
  { db }: Pick<Ctx, 'db'>,
  request: SessionRequest,
  { present = null, admit = () => undefined }: SessionOpening = {},
): Promise<string | null> {
  return db.transaction(async (trx) => {
    const opener = await findOpener(trx, request);
    if (opener === null) return null;
    const mayReplace = request.code === undefined || request.replace === true;
    if (present !== null && !mayReplace) await refuseReplacing(trx, opener, present);
    admit(opener.key_id);
    const secret = `ses_${randomSecret()}`;
    await insertSession(trx, {
      session_id: newId('session'),
      secret_sha256: digestOf(secret),
      keyId: opener.key_id,
      hours: sessionHours,
      isByFormer: opener.shown === 'former secret',
    });
    await insertAudits(trx, auditOf(opener, 'session.opened'));
    return secret;
  });
}

/** @returns the session that has ended; null: it had ended before */
export async function closeSession(
  { db, verifiedKeys }: KeyCtx,
  secret: string,
): Promise<EndedSession | null> {
  const closed = await db.transaction(async (trx) => {
    const ended = await deleteSession(trx, digestOf(secret));
    if (ended !== null) await insertAudits(trx, auditOf(ended, 'session.closed'));
    return ended;
  });
  forgetText(verifiedKeys, secret);
  return closed;
}

function toEntry({ created_at, expires_at, checked_at, scopes: _, ...row }: SessionRow) {
  return {
    ...row,
    opened_at: created_at.toISOString(),
    expires_at: expires_at.toISOString(),
    checked_at: checked_at?.toISOString() ?? null,
  };
}

export async function listSessionsOf(
  { db }: Pick<Ctx, 'db'>,
  { projects }: Caller,
  { limit, cursor, user }: SessionQuery,
) {
  const after = cursor === undefined ? null : decodeCursor(cursor);
  const rows = await listSessions(db, { projects, user, after, limit: limit + 1 });
  return toPage(rows, limit, { key: (row) => row.session_id, item: toEntry });
}

/** The sessions of a user (id, e-mail address or subject), or the one with an id. */
type WhichSessions = { readonly user: string } | { readonly sessionId: string };

/**
 * Ends them in all processes, within the time that keys are cached.
 *
 * @returns how many
 * @throws AppError `forbidden` for an operator's session when the caller is none
 */
export async function revokeSessions(
  { db, verifiedKeys }: KeyCtx,
  caller: Caller,
  which: WhichSessions,
): Promise<number> {
  const revoked = await db.transaction(async (trx) => {
    const ended = await endSessions(trx, { projects: caller.projects, ...which });
    const foreign = ended.find(({ scopes }) => scopes.includes('operator'));
    if (foreign !== undefined && !isOperator(caller))
      throw new AppError(
        'forbidden',
        `${foreign.key_id} has the scope operator; only a key with this scope ends its sessions`,
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
  forgetKeys(
    verifiedKeys,
    revoked.map(({ key_id }) => key_id),
  );
  return revoked.length;
}

/**
 * Makes a sign-in link. Its code is in the fragment, which browsers do not send, so it is in no log.
 *
 * @throws AppError `forbidden` for a person, and for a secret that was replaced
 */
export async function createLoginLink(
  { db, publicUrl }: Pick<ServerCtx, 'db' | 'publicUrl'>,
  caller: Caller,
): Promise<LoginLink> {
  if (isPersonId(caller.key_id))
    throw new AppError(
      'forbidden',
      `${caller.key_id} is a person who signs in at the provider; create links with a key`,
    );
  if (caller.shown === 'former secret')
    throw new AppError(
      'forbidden',
      `the former secret of ${caller.key_id} cannot create links; use its current secret`,
    );
  return db.transaction(async (trx) => {
    const code = randomSecret();
    const expires_at = await insertLoginCode(trx, {
      code_sha256: digestOf(code),
      keyId: caller.key_id,
      minutes: loginCodeMinutes,
    });
    await insertAudits(trx, auditOf(caller, 'login_link.created'));
    return { url: new URL(`/ui/login#${code}`, publicUrl()).href, expires_at: expires_at.toISOString() };
  });
}

/** Returns the signed-in key or person and its rights. @throws AppError `unauthenticated` when the key has ended */
export async function describeSession({ db }: Pick<Ctx, 'db'>, { key_id, scopes, ...held }: Caller) {
  const key = await findLiveKey(db, key_id);
  if (key === null) throw new AppError('unauthenticated', `${key_id} was revoked or has expired`);
  const ids = [...held.projects, ...(held.alsoIn ?? [])];
  const rows = await listProjects(db, { ids, after: null, limit: ids.length });
  return {
    key_id,
    name: key.name,
    person: await findEmail(db, key_id),
    scopes: [...scopes],
    projects: rows.map(({ project_id, name, timezone }) => ({ project_id, name, timezone })),
  };
}
