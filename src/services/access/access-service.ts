/**
 * Keys and projects, and sessions as an administrator sees and ends them. A key acts only within the projects it
 * is bound to, `admin` keys included. A project that one creates belongs to it and to every key that it came from,
 * so that whoever made the key holds it too. A verified key is trusted for `cacheMs`, so that a revocation reaches
 * every process within that time.
 *
 * An administrator sees and ends the sessions whose key or person shares a project with the caller, as it is with
 * keys (K3).
 */

import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type {
  KeyCreated,
  KeyRequest,
  KeyRevoked,
  Project,
  ProjectRequest,
  RotationRequest,
} from '../../contracts/access.ts';
import type { LoginLink, SessionQuery, SessionRequest } from '../../contracts/sign-in.ts';
import { fromNanoUsd, toNanoUsd } from '../../core/money/nano-usd.ts';
import { addProjectUpwards, listKeys, lockKeys } from '../../db/access/api-key.ts';
import { insertAudit } from '../../db/access/audit.ts';
import { holdsEvery } from '../../db/access/person.ts';
import { insertProject, isKnownTimezone, listProjects, type ProjectRow } from '../../db/access/project.ts';
import {
  type EndedSession,
  endSessions,
  findSessionHolder,
  listSessions,
  type SessionRow,
} from '../../db/access/session.ts';
import type { Db } from '../../db/connect.ts';
import { AppError, refuseField } from '../../errors/app-error.ts';
import { decodeCursor, type PageRequest, toPage } from '../cursor.ts';
import { newId } from '../ids.ts';
import { type Caller, isOperator, type KeyHolder, toHolder } from './caller.ts';
import { verifyKey } from './key-text.ts';
import { createKey, revokeKey, rotateKey, toKey } from './keys.ts';
import { auditIn } from './person-rights.ts';
import {
  closeSession,
  createLoginLink,
  describeSession,
  digestOf,
  isSessionText,
  openSession,
  type SessionOpening,
} from './sessions.ts';

/**
 * @returns the project and the keys that hold it
 * @throws AppError `request_invalid` for an unknown time zone, `forbidden` for a person who would not hold it
 */
async function createProject(
  db: Db,
  { key_id, byProject }: Caller,
  { name, timezone, daily_limit_usd }: ProjectRequest,
): Promise<{ readonly row: ProjectRow; readonly holders: readonly string[] }> {
  if (!(await isKnownTimezone(db, timezone))) {
    const message = `${JSON.stringify(timezone)} is no IANA time zone; one is Europe/Berlin`;
    throw refuseField('/timezone', message);
  }
  if (byProject !== undefined && !(await holdsEvery(db, key_id)))
    throw new AppError(
      'forbidden',
      `${key_id} holds the projects of their groups; a key makes projects, or who is in a group that holds all (*)`,
    );
  const project_id = newId('project');
  const daily_limit_nano = toNanoUsd(daily_limit_usd);
  return db.transaction(async (trx) => {
    await lockKeys(trx);
    const row = await insertProject(trx, { project_id, name, timezone, daily_limit_nano });
    const holders = await addProjectUpwards(trx, key_id, project_id);
    const entry = { actor: key_id, action: 'project.created', subject: project_id };
    await insertAudit(trx, { ...entry, project_id, data: { name } });
    return { row, holders };
  });
}

/** Those of a user (id, e-mail address or subject), or the one of an id. */
type WhichSessions = { readonly user: string } | { readonly sessionId: string };

function toEntry({ created_at, expires_at, checked_at, scopes: _, ...row }: SessionRow) {
  return {
    ...row,
    opened_at: created_at.toISOString(),
    expires_at: expires_at.toISOString(),
    checked_at: checked_at?.toISOString() ?? null,
  };
}

async function listSessionsOf(db: Db, { projects }: Caller, { limit, cursor, user }: SessionQuery) {
  const after = cursor === undefined ? null : decodeCursor(cursor);
  const rows = await listSessions(db, { projects, user, after, limit: limit + 1 });
  return toPage(rows, limit, { key: (row) => row.session_id, item: toEntry });
}

/** @returns those that have ended by it. @throws AppError `forbidden` for an operator's by who is none */
function revokeSessions(db: Db, caller: Caller, which: WhichSessions): Promise<readonly EndedSession[]> {
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

interface AccessSettings {
  /** How long a verified key is trusted without asking the database; 0 asks always. */
  readonly cacheMs: number;
  /** Shown in new keys: `dev` or `live`. */
  readonly keyEnvironment: string;
  /** Where browsers reach the console. */
  readonly publicUrl: () => string;
}

const defaults: AccessSettings = {
  cacheMs: 5_000,
  keyEnvironment: 'dev',
  publicUrl: () => 'http://127.0.0.1:7400',
};

function toProject({ daily_limit_nano, created_at, ...row }: ProjectRow): Project {
  return {
    ...row,
    daily_limit_usd: fromNanoUsd(BigInt(daily_limit_nano)),
    created_at: created_at.toISOString(),
  };
}

function afterOf(cursor: string | undefined) {
  return cursor === undefined ? null : decodeCursor(cursor);
}

/** Of a key, or of a session by its secret. Null when it is malformed, unknown or over. */
async function verify(db: Db, text: string): Promise<KeyHolder | null> {
  if (!isSessionText(text)) return verifyKey(db, text);
  const row = await findSessionHolder(db, digestOf(text));
  return row === null ? null : toHolder(row);
}

export function createAccessService(db: Db, settings: Partial<AccessSettings> = {}) {
  const { cacheMs, keyEnvironment: environment, publicUrl } = { ...defaults, ...settings };
  const trusted = new LRUCache<string, KeyHolder>({ max: 10_000, ttl: cacheMs, ttlResolution: 0 });
  const forget = (keyIds: readonly string[]): void => {
    for (const [digest, { key_id }] of trusted.entries()) if (keyIds.includes(key_id)) trusted.delete(digest);
  };

  return {
    /** By a key or the secret of a session. Null when it is malformed, unknown, expired or revoked. */
    identify: async (keyText: string): Promise<KeyHolder | null> => {
      const digest = hash('sha256', keyText, 'base64');
      const known = trusted.get(digest);
      if (known !== undefined) return known;
      const holder = await verify(db, keyText);
      if (holder !== null && cacheMs > 0) trusted.set(digest, holder);
      return holder;
    },

    /** Asks the database, whatever is trusted; so it is the first to hear of a revocation. */
    isValid: async (keyText: string): Promise<boolean> => {
      const isValid = (await verify(db, keyText)) !== null;
      if (!isValid) trusted.delete(hash('sha256', keyText, 'base64'));
      return isValid;
    },

    /**
     * @returns its secret; null when what should open it is wrong, used or over
     * @throws AppError `state_conflict` where a code would replace the session of another key unasked
     */
    openSession: (request: SessionRequest, opening?: SessionOpening): Promise<string | null> =>
      openSession(db, request, opening),

    /** @returns what has ended; null: it was over */
    closeSession: async (secret: string): Promise<EndedSession | null> => {
      const ended = await closeSession(db, secret);
      trusted.delete(hash('sha256', secret, 'base64'));
      return ended;
    },

    listSessions: (caller: Caller, query: SessionQuery) => listSessionsOf(db, caller, query),

    /** Everywhere within `cacheMs`. @returns how many. @throws AppError `forbidden` for an operator's */
    revokeSessions: async (caller: Caller, which: WhichSessions): Promise<number> => {
      const ended = await revokeSessions(db, caller, which);
      forget(ended.map(({ key_id }) => key_id));
      return ended.length;
    },

    describeSession: (caller: Caller) => describeSession(db, caller),

    createLoginLink: (caller: Caller): Promise<LoginLink> => createLoginLink(db, caller, publicUrl()),

    createProject: async (caller: Caller, request: ProjectRequest): Promise<Project> => {
      const { row, holders } = await createProject(db, caller, request);
      forget(holders);
      return toProject(row);
    },

    listProjects: async ({ projects }: Caller, { limit, cursor }: PageRequest) => {
      const rows = await listProjects(db, { ids: projects, after: afterOf(cursor), limit: limit + 1 });
      return toPage(rows, limit, { key: (row) => row.project_id, item: toProject });
    },

    createKey: (caller: Caller, request: KeyRequest): Promise<KeyCreated> =>
      createKey(db, { caller, environment }, request),

    /** Those that share a project with the caller. */
    listKeys: async ({ projects }: Caller, { limit, cursor }: PageRequest) => {
      const rows = await listKeys(db, { projects, after: afterOf(cursor), limit: limit + 1 });
      return toPage(rows, limit, { key: (row) => row.key_id, item: (row) => toKey(row, projects) });
    },

    /** With all keys that came from it. @throws AppError `not_found`, `forbidden` */
    revokeKey: async (caller: Caller, keyId: string): Promise<KeyRevoked> => {
      const revoked = await revokeKey(db, caller, keyId);
      forget(revoked.key_ids);
      return revoked;
    },

    /** The former secret works for `overlap_s` more. @throws AppError `not_found` */
    rotateKey: async (caller: Caller, keyId: string, request: RotationRequest): Promise<KeyCreated> => {
      const made = await rotateKey(db, { caller, environment }, { keyId, overlapS: request.overlap_s });
      forget([keyId]);
      return made;
    },
  };
}

export type AccessService = ReturnType<typeof createAccessService>;
