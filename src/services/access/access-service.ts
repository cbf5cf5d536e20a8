/**
 * Keys and projects. A key acts only within the projects it is bound to, `admin` keys included: they see, make
 * and revoke keys of their own projects only, and a project they create becomes one of theirs.
 * A verified key is trusted for `cacheMs`, so that a revocation reaches every process within that time.
 */
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Key, KeyCreated, KeyRequest, Project, ProjectRequest } from '../../contracts/access.ts';
import { fromNanoUsd, toNanoUsd } from '../../core/money/nano-usd.ts';
import { addProjectToKey, insertKey, type KeyRow, listKeys, revokeKey } from '../../db/access/api-key.ts';
import { insertProject, isKnownTimezone, listProjects, type ProjectRow } from '../../db/access/project.ts';
import type { Db } from '../../db/connect.ts';
import { AppError } from '../../errors/app-error.ts';
import { decodeCursor, type PageRequest, toPage } from '../cursor.ts';
import { newId } from '../ids.ts';
import { type Caller, requireProjects } from './caller.ts';
import { generateKey } from './key-text.ts';
import { type KeyHolder, verifyKey } from './verify-key.ts';

export interface AccessSettings {
  /** How long a verified key is trusted without asking the database; 0 asks always. */
  readonly cacheMs: number;
  /** Shown in new keys: `dev` or `live`. */
  readonly keyEnvironment: string;
}

const defaults: AccessSettings = { cacheMs: 5_000, keyEnvironment: 'dev' };

function toProject({ daily_limit_nano, created_at, ...row }: ProjectRow): Project {
  return {
    ...row,
    daily_limit_usd: fromNanoUsd(BigInt(daily_limit_nano)),
    created_at: created_at.toISOString(),
  };
}

function toKey(row: KeyRow): Key {
  return {
    key_id: row.key_id,
    name: row.name,
    projects: [...row.projects],
    scopes: [...row.scopes],
    expires_at: row.expires_at?.toISOString() ?? null,
    revoked_at: row.revoked_at?.toISOString() ?? null,
    created_at: row.created_at.toISOString(),
  };
}

function refuseField(pointer: string, message: string): AppError {
  return new AppError('request_invalid', message, { errors: [{ pointer, code: 'invalid_value', message }] });
}

function afterOf(cursor: string | undefined) {
  return cursor === undefined ? null : decodeCursor(cursor);
}

export function createAccessService(db: Db, settings: Partial<AccessSettings> = {}) {
  const { cacheMs, keyEnvironment } = { ...defaults, ...settings };
  const trusted = new LRUCache<string, KeyHolder>({ max: 10_000, ttl: cacheMs, ttlResolution: 0 });
  const forget = (keyId: string): void => {
    for (const [digest, holder] of trusted.entries()) if (holder.key_id === keyId) trusted.delete(digest);
  };

  return {
    /** Null when the key is malformed, unknown, expired or revoked. */
    identify: async (keyText: string): Promise<KeyHolder | null> => {
      const digest = hash('sha256', keyText, 'base64');
      const known = trusted.get(digest);
      if (known !== undefined) return known;
      const holder = await verifyKey(db, keyText);
      if (holder !== null && cacheMs > 0) trusted.set(digest, holder);
      return holder;
    },

    createProject: async (caller: Caller, request: ProjectRequest): Promise<Project> => {
      const { name, timezone, daily_limit_usd } = request;
      if (!(await isKnownTimezone(db, timezone)))
        throw refuseField(
          '/timezone',
          `${JSON.stringify(timezone)} is no IANA time zone; one is Europe/Berlin`,
        );
      const project_id = newId('project');
      const row = await db.transaction(async (trx) => {
        await addProjectToKey(trx, caller.key_id, project_id);
        return insertProject(trx, {
          project_id,
          name,
          timezone,
          daily_limit_nano: toNanoUsd(daily_limit_usd),
        });
      });
      forget(caller.key_id);
      return toProject(row);
    },

    listProjects: async ({ projects }: Caller, { limit, cursor }: PageRequest) => {
      const rows = await listProjects(db, { ids: projects, after: afterOf(cursor), limit: limit + 1 });
      return toPage(rows, limit, { key: (row) => row.project_id, item: toProject });
    },

    createKey: async (caller: Caller, request: KeyRequest): Promise<KeyCreated> => {
      requireProjects(caller, request.projects);
      const { key, ...parts } = generateKey(keyEnvironment);
      const { name, expires_at = null } = request;
      const projects = [...new Set(request.projects)];
      await insertKey(db, { ...parts, name, scopes: [...new Set(request.scopes)], projects, expires_at });
      return { key_id: parts.key_id, key };
    },

    listKeys: async ({ projects }: Caller, { limit, cursor }: PageRequest) => {
      const rows = await listKeys(db, { projects, after: afterOf(cursor), limit: limit + 1 });
      return toPage(rows, limit, { key: (row) => row.key_id, item: toKey });
    },

    /** @throws AppError `not_found` when the key is none of the caller's projects */
    revokeKey: async ({ projects }: Caller, keyId: string): Promise<void> => {
      if (!(await revokeKey(db, keyId, projects))) throw new AppError('not_found', `no key ${keyId}`);
      forget(keyId);
    },
  };
}

export type AccessService = ReturnType<typeof createAccessService>;
