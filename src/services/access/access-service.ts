/**
 * Keys and projects. A key acts only within the projects it is bound to, `admin` keys included. A project that one
 * creates belongs to it and to every key that it came from, so that whoever made the key holds it too.
 * A verified key is trusted for `cacheMs`, so that a revocation reaches every process within that time.
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
import type { LoginLink, SessionQuery, SessionRequest } from '../../contracts/session.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import { listKeys } from '../../db/access/api-key.ts';
import { listProjects, type ProjectRow } from '../../db/access/project.ts';
import { type EndedSession, findSessionHolder } from '../../db/access/session.ts';
import type { Db } from '../../db/connect.ts';
import { decodeCursor, type PageRequest, toPage } from '../cursor.ts';
import type { Caller } from './caller.ts';
import { createProject } from './create-project.ts';
import { createKey, revokeKey, rotateKey, toKey } from './keys.ts';
import { type KeyHolder, toHolder } from './rights.ts';
import { listSessionsOf, revokeSessions, type WhichSessions } from './session-admin.ts';
import {
  closeSession,
  createLoginLink,
  describeSession,
  digestOf,
  isSessionText,
  openSession,
  type SessionOpening,
} from './sessions.ts';
import { verifyKey } from './verify-key.ts';

export interface AccessSettings {
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
