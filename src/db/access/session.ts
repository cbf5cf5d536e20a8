/** Sessions of browsers, and the codes that open them. Both end with their key. */
import type { Grant } from '../../contracts/sign-in.ts';
import type { Db } from '../connect.ts';
import { purgeOld } from '../purge.ts';
import { isLiveKey, type KeyRow } from './api-key.ts';

type KeyOfSession = Pick<KeyRow, 'key_id' | 'scopes' | 'projects'>;

export interface SessionHolder extends KeyOfSession {
  /** Of a person; null: a key. */
  readonly grants: readonly Grant[] | null;
  /** Where a grant speaks of all projects. */
  readonly every_project: readonly string[] | null;
}

export interface NewSession {
  readonly session_id: string;
  readonly secret_sha256: Buffer;
  readonly keyId: string;
  readonly hours: number;
  /** By the secret before a rotation: it ends with that. */
  readonly isByFormer?: boolean;
  /** Of a person. */
  readonly provider?: {
    readonly signIn: Buffer;
    readonly sid: string | null;
    readonly tokens: Buffer | null;
    /** Whether it goes on while the provider renews it. */
    readonly isRenewed: boolean;
  };
}

/** It ends after `hours`, or with its key. False when the sign-in has opened one before; nothing was written. */
export async function insertSession(
  db: Db,
  { session_id, secret_sha256, keyId, hours, isByFormer = false, provider }: NewSession,
): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `insert into session
       (secret_sha256, session_id, key_id, expires_at, sign_in_sha256, provider_sid, tokens, is_renewed)
     select ?, ?, key_id, least(now() + make_interval(hours => ?), expires_at, case when ? then former_until end),
       ?, ?, ?, ?
     from api_key where key_id = ? on conflict (sign_in_sha256) do nothing`,
    [
      ...[secret_sha256, session_id, hours, isByFormer],
      ...[provider?.signIn ?? null, provider?.sid ?? null, provider?.tokens ?? null],
      ...[provider?.isRenewed ?? false, keyId],
    ],
  );
  return rowCount > 0;
}

/** Columns of a SessionHolder. */
const holder = `key_id, scopes, projects, p.grants,
  case when p.holds_every_project
    then array(select project_id from project where erasing_since is null order by project_id) end as every_project`;

/** Null when it is unknown or over, or its key is. */
export async function findSessionHolder(db: Db, secret_sha256: Buffer): Promise<SessionHolder | null> {
  const { rows } = await db.raw<{ rows: SessionHolder[] }>(
    `select ${holder} from session s join api_key k using (key_id) left join person p using (key_id)
     where s.secret_sha256 = ? and s.expires_at > now() and ${isLiveKey('k')}`,
    [secret_sha256],
  );
  return rows[0] ?? null;
}

/** As a session of it would hold; null when there is none, or it is revoked or expired. */
export async function findHolder(db: Db, keyId: string): Promise<SessionHolder | null> {
  const { rows } = await db.raw<{ rows: SessionHolder[] }>(
    `select ${holder} from api_key k left join person p using (key_id) where key_id = ? and ${isLiveKey('k')}`,
    [keyId],
  );
  return rows[0] ?? null;
}

export interface EndedSession {
  readonly session_id: string;
  readonly key_id: string;
  readonly projects: readonly string[];
  readonly tokens: Buffer | null;
}

/** Null: there was none. */
export async function deleteSession(db: Db, secret_sha256: Buffer): Promise<EndedSession | null> {
  const { rows } = await db.raw<{ rows: EndedSession[] }>(
    `delete from session s using api_key k where k.key_id = s.key_id and s.secret_sha256 = ?
     returning s.session_id, s.key_id, k.projects, s.tokens`,
    [secret_sha256],
  );
  return rows[0] ?? null;
}

/** @returns when it ends */
export async function insertLoginCode(
  db: Db,
  {
    code_sha256,
    keyId,
    minutes,
  }: { readonly code_sha256: Buffer; readonly keyId: string; readonly minutes: number },
): Promise<Date> {
  const { rows } = await db.raw<{ rows: [{ expires_at: Date }] }>(
    `insert into login_code (code_sha256, key_id, expires_at)
     select ?, key_id, least(now() + make_interval(mins => ?), expires_at) from api_key where key_id = ?
     returning expires_at`,
    [code_sha256, minutes, keyId],
  );
  return rows[0].expires_at;
}

/** It is gone by this, so of two that bring it one gets the key. Null when it is unknown, used or over, or its key is. */
export async function useLoginCode(db: Db, code_sha256: Buffer): Promise<KeyOfSession | null> {
  const { rows } = await db.raw<{ rows: KeyOfSession[] }>(
    `with used as (delete from login_code where code_sha256 = ? returning key_id, expires_at)
     select key_id, scopes, projects from used u join api_key k using (key_id)
     where u.expires_at > now() and ${isLiveKey('k')}`,
    [code_sha256],
  );
  return rows[0] ?? null;
}

/** Sessions and codes of a key whose secret is renewed end when the former secret does. */
export async function endSessionsOf(trx: Db, keyId: string, overlapS: number): Promise<void> {
  for (const table of ['session', 'login_code'])
    await trx.raw(
      `update ${table} set expires_at = least(expires_at, now() + make_interval(secs => ?)) where key_id = ?`,
      [overlapS, keyId],
    );
}

/** All of them, whoever they are of. @returns how many */
export async function deleteAllSessions(db: Db): Promise<{ sessions: number; login_links: number }> {
  return db.transaction(async (trx) => ({
    sessions: await trx('session').delete(),
    login_links: await trx('login_code').delete(),
  }));
}

/** Of those that are over for longer than anybody asks. @returns how many */
export async function purgeSessions(db: Db): Promise<number> {
  const sessions = await purgeOld(db, { table: 'session', hours: 24 });
  return sessions + (await purgeOld(db, { table: 'login_code', hours: 24 }));
}
