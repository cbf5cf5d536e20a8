/**
 * Browsers that have signed in. S1: a session acts as its key, never as more. S2: it ends after 12 hours, and with its
 * key: revoked, expired, or its secret renewed and the former one over, which it also does that the former one has opened;
 * one of those makes no links. S3: what opens one (a key, or a code of one use
 * and 10 minutes) is not kept by it, and the database holds digests alone.
 */
import { hash } from 'node:crypto';
import { loginCodeMinutes, sessionHours } from '../../contracts/bounds.ts';
import type { Json } from '../../contracts/primitives.ts';
import type { LoginLink, SessionRequest } from '../../contracts/sign-in.ts';
import { findLiveKey } from '../../db/access/api-key.ts';
import { insertAudits } from '../../db/access/audit.ts';
import { findEmail } from '../../db/access/person.ts';
import { listProjects } from '../../db/access/project.ts';
import {
  deleteSession,
  type EndedSession,
  findSessionHolder,
  insertLoginCode,
  insertSession,
  useLoginCode,
} from '../../db/access/session.ts';
import type { Db } from '../../db/connect.ts';
import { AppError } from '../../errors/app-error.ts';
import { newId } from '../ids.ts';
import type { Caller, KeyHolder } from './caller.ts';
import { isPersonId } from './caller.ts';
import { randomSecret, verifyKey } from './key-text.ts';

const form = /^ses_[0-9A-Za-z]{43}$/;

/** Keys begin with `cap_`, so the two are never mistaken for one another. */
export function isSessionText(text: string): boolean {
  return form.test(text);
}

export function digestOf(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

type Opener = Pick<KeyHolder, 'key_id' | 'projects' | 'shown'>;

async function findOpener(trx: Db, request: SessionRequest): Promise<Opener | null> {
  return request.code === undefined ? verifyKey(trx, request.key) : useLoginCode(trx, digestOf(request.code));
}

function auditOf({ key_id, projects }: Opener, action: string) {
  return projects.map((project_id) => ({ actor: key_id, action, subject: key_id, project_id, data: {} }));
}

export interface SessionOpening {
  /** The session that the browser has, by its secret. */
  readonly present?: string | null;
  /** Told of the key before anything is written; what it throws is thrown, and a code stays unused. */
  readonly admit?: (keyId: string) => void;
}

async function nameOf(db: Db, keyId: string): Promise<Json> {
  return { key_id: keyId, name: (await findLiveKey(db, keyId))?.name ?? keyId };
}

/**
 * Whoever makes a link may send it to somebody who is signed in, and would have them work as another key unnoticed.
 *
 * @throws AppError `state_conflict`, which says who is signed in and whose link it is
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
 * @returns the secret of the new session; null when what should open it is wrong, used or over
 * @throws AppError `state_conflict` where a code would replace the session of another key unasked
 */
export function openSession(
  db: Db,
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

/** Null: it was over. */
export function closeSession(db: Db, secret: string): Promise<EndedSession | null> {
  return db.transaction(async (trx) => {
    const ended = await deleteSession(trx, digestOf(secret));
    if (ended !== null) await insertAudits(trx, auditOf(ended, 'session.closed'));
    return ended;
  });
}

/**
 * The code stands in the fragment, which browsers send to nobody, so it is in no log.
 *
 * @throws AppError `forbidden` for a person, and for the secret before a rotation
 */
export async function createLoginLink(db: Db, caller: Caller, publicUrl: string): Promise<LoginLink> {
  if (isPersonId(caller.key_id))
    throw new AppError('forbidden', `${caller.key_id} signs in at the provider; links are made with a key`);
  if (caller.shown === 'former secret')
    throw new AppError(
      'forbidden',
      `the former secret of ${caller.key_id} makes no links; its present one does`,
    );
  return db.transaction(async (trx) => {
    const code = randomSecret();
    const expires_at = await insertLoginCode(trx, {
      code_sha256: digestOf(code),
      keyId: caller.key_id,
      minutes: loginCodeMinutes,
    });
    await insertAudits(trx, auditOf(caller, 'login_link.created'));
    return { url: new URL(`/ui/login#${code}`, publicUrl).href, expires_at: expires_at.toISOString() };
  });
}

/** What a page shows of who has signed in. @throws AppError `unauthenticated` when the key has just ended */
export async function describeSession(db: Db, { key_id, scopes, ...held }: Caller) {
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
