/**
 * Browser sessions, and the codes that open them. Both end with their key, or if an administrator or the provider ends
 * them.
 */
import type { Grant } from '@capstan/core/contracts/sign-in';
import type { Db } from '../connect.ts';
import { purgeOld, query } from '../statements.ts';
import { isLiveKey, type KeyRow, type RatesInForce, ratesInForce } from './api-key.ts';

type KeyOfSession = Pick<KeyRow, 'key_id' | 'scopes' | 'projects'>;

export interface SessionHolder extends KeyOfSession {
  readonly rates: readonly RatesInForce[];
  /** A person's grants; null: the session is a key's. */
  readonly grants: readonly Grant[] | null;
  /** All projects, if a grant covers every project. */
  readonly every_project: readonly string[] | null;
}

interface NewSession {
  readonly session_id: string;
  readonly secret_sha256: Buffer;
  readonly keyId: string;
  readonly hours: number;
  /** Opened with the secret before a rotation: the session ends with that secret. */
  readonly isByFormer?: boolean;
  /** Only for a person. */
  readonly provider?: {
    readonly signIn: Buffer;
    readonly sid: string | null;
    readonly tokens: Buffer | null;
    /** Whether the session lasts only while the provider confirms it. */
    readonly isRenewed: boolean;
  };
}

/**
 * The session ends after `hours`, or with its key.
 * @returns false if the sign-in has opened one before; nothing was written
 */
export function insertSession(
  db: Db,
  { session_id, secret_sha256, keyId, hours, isByFormer = false, provider }: NewSession,
): Promise<boolean> {
  return query(db).wrote(
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
}

/** Columns of a SessionHolder. */
const holder = `key_id, scopes, projects, ${ratesInForce('k')}, p.grants,
  case when p.holds_every_project
    then array(select project_id from project where erasing_since is null order by project_id) end as every_project`;

/** @returns null if the session or its key is unknown, expired or revoked */
export async function findSessionHolder(db: Db, secret_sha256: Buffer): Promise<SessionHolder | null> {
  const row = await query<SessionHolder>(db).first(
    `select ${holder} from session s join api_key k using (key_id) left join person p using (key_id)
     where s.secret_sha256 = ? and s.expires_at > now() and ${isLiveKey('k')}`,
    [secret_sha256],
  );
  return row ?? null;
}

/** What a session of this key would hold. @returns null if the key is unknown, revoked or expired */
export async function findHolder(db: Db, keyId: string): Promise<SessionHolder | null> {
  const row = await query<SessionHolder>(db).first(
    `select ${holder} from api_key k left join person p using (key_id) where key_id = ? and ${isLiveKey('k')}`,
    [keyId],
  );
  return row ?? null;
}

export interface EndedSession {
  readonly session_id: string;
  readonly key_id: string;
  readonly projects: readonly string[];
  readonly tokens: Buffer | null;
}

/** @returns null if there was none */
export async function deleteSession(db: Db, secret_sha256: Buffer): Promise<EndedSession | null> {
  const row = await query<EndedSession>(db).first(
    `delete from session s using api_key k where k.key_id = s.key_id and s.secret_sha256 = ?
     returning s.session_id, s.key_id, k.projects, s.tokens`,
    [secret_sha256],
  );
  return row ?? null;
}

/** @returns the time at which it expires */
export async function insertLoginCode(
  db: Db,
  {
    code_sha256,
    keyId,
    minutes,
  }: { readonly code_sha256: Buffer; readonly keyId: string; readonly minutes: number },
): Promise<Date> {
  const row = await query<{ expires_at: Date }>(db).one(
    `insert into login_code (code_sha256, key_id, expires_at)
     select ?, key_id, least(now() + make_interval(mins => ?), expires_at) from api_key where key_id = ?
     returning expires_at`,
    [code_sha256, minutes, keyId],
  );
  return row.expires_at;
}

/**
 * Deletes the code, so only one of two concurrent uses gets the key.
 * @returns null if the code is unknown, used or expired, or its key does not work
 */
export async function useLoginCode(db: Db, code_sha256: Buffer): Promise<KeyOfSession | null> {
  const row = await query<KeyOfSession>(db).first(
    `with used as (delete from login_code where code_sha256 = ? returning key_id, expires_at)
     select key_id, scopes, projects from used u join api_key k using (key_id)
     where u.expires_at > now() and ${isLiveKey('k')}`,
    [code_sha256],
  );
  return row ?? null;
}

/** Sessions and codes of a key whose secret was rotated end with the former secret. */
export async function endSessionsOf(trx: Db, keyId: string, overlapS: number): Promise<void> {
  for (const table of ['session', 'login_code'])
    await trx.raw(
      `update ${table} set expires_at = least(expires_at, now() + make_interval(secs => ?)) where key_id = ?`,
      [overlapS, keyId],
    );
}

/** Deletes the sessions and codes of all keys. @returns how many */
export async function deleteAllSessions(db: Db): Promise<{ sessions: number; login_links: number }> {
  return db.transaction(async (trx) => ({
    sessions: await trx('session').delete(),
    login_links: await trx('login_code').delete(),
  }));
}

/** Deletes sessions and codes that are a day old, longer than any of them lasts. @returns how many */
export async function purgeSessions(db: Db): Promise<number> {
  const sessions = await purgeOld(db, { table: 'session', hours: 24 });
  return sessions + (await purgeOld(db, { table: 'login_code', hours: 24 }));
}

// Sessions, for administrators.

export interface SessionRow {
  readonly session_id: string;
  readonly key_id: string;
  readonly name: string;
  readonly email: string | null;
  readonly scopes: readonly string[];
  readonly created_at: Date;
  readonly expires_at: Date;
  /** Null: it is not confirmed with the provider. */
  readonly checked_at: Date | null;
}

interface SessionFilter {
  /** The session's key has at least one of these. */
  readonly projects: readonly string[];
  /** Id of a person or key, e-mail address, or subject at the provider. */
  readonly user: string | undefined;
  readonly after: string | null;
  readonly limit: number;
}

const isOf = '(k.key_id = ? or lower(p.email) = lower(?) or p.subject = ?)';

function namesOf(user: string | undefined): readonly (string | null)[] {
  return [user ?? null, user ?? null, user ?? null, user ?? null];
}

/** Newest first, without expired ones. */
export function listSessions(
  db: Db,
  { projects, user, after, limit }: SessionFilter,
): Promise<readonly SessionRow[]> {
  return query<SessionRow>(db).all(
    `select s.session_id, k.key_id, k.name, p.email, k.scopes, s.created_at, s.expires_at,
       case when s.is_renewed then s.checked_at end as checked_at
     from session s join api_key k using (key_id) left join person p using (key_id)
     where k.projects && ?::text[] and s.expires_at > now() and ${isLiveKey('k')}
       and (?::text is null or ${isOf}) and (?::text is null or s.session_id < ?)
     order by s.session_id desc limit ?`,
    [[...projects], ...namesOf(user), after, after, limit],
  );
}

/** Ends all sessions of a user, or the one with this id, if its key has one of `projects`. */
export async function endSessions(
  trx: Db,
  { projects, user, sessionId }: { projects: readonly string[]; user?: string; sessionId?: string },
): Promise<readonly (EndedSession & { readonly scopes: readonly string[] })[]> {
  const { rows } = await trx.raw(
    `delete from session s using api_key k left join person p using (key_id)
     where k.key_id = s.key_id and k.projects && ?::text[]
       and (?::text is null or ${isOf}) and (?::text is null or s.session_id = ?)
     returning s.session_id, s.key_id, k.projects, k.scopes, s.tokens`,
    [[...projects], ...namesOf(user), sessionId ?? null, sessionId ?? null],
  );
  return rows;
}

/** Ends the sessions that the provider's notice names: those of one sign-in, or all of the person. */
export async function endSessionsAtProvider(
  trx: Db,
  notice: { readonly issuer: string; readonly subject: string | null; readonly sid: string | null },
): Promise<readonly EndedSession[]> {
  const { rows } = await trx.raw(
    `delete from session s using api_key k, person p
     where k.key_id = s.key_id and p.key_id = s.key_id and p.issuer = ?
       and (?::text is null or p.subject = ?) and (?::text is null or s.provider_sid = ?)
     returning s.session_id, s.key_id, k.projects, s.tokens`,
    [notice.issuer, notice.subject, notice.subject, notice.sid, notice.sid],
  );
  return rows;
}

/** Ends all sessions of a person. */
export async function endSessionsOfPerson(trx: Db, keyId: string): Promise<readonly EndedSession[]> {
  const { rows } = await trx.raw(
    `delete from session s using api_key k where k.key_id = s.key_id and s.key_id = ?
     returning s.session_id, s.key_id, k.projects, s.tokens`,
    [keyId],
  );
  return rows;
}

export interface DueSession {
  readonly session_id: string;
  readonly key_id: string;
  readonly tokens: Buffer;
  readonly issuer: string;
  readonly subject: string;
}

/** Takes sessions that the provider has not confirmed for `seconds`. They are due again after the same time. */
export function takeDueSessions(
  db: Db,
  { seconds, limit }: { readonly seconds: number; readonly limit: number },
): Promise<readonly DueSession[]> {
  return query<DueSession>(db).all(
    `with due as (
       select session_id from session
       where is_renewed and asked_at < now() - make_interval(secs => ?) and expires_at > now()
       order by asked_at limit ? for update skip locked
     )
     update session s set asked_at = now() from due, person p
     where s.session_id = due.session_id and p.key_id = s.key_id
     returning s.session_id, s.key_id, s.tokens, p.issuer, p.subject`,
    [seconds, limit],
  );
}

/** Notes that the provider has just confirmed the session. */
export async function keepChecked(trx: Db, sessionId: string): Promise<void> {
  await trx.raw('update session set checked_at = now() where session_id = ?', [sessionId]);
}

export async function keepTokens(db: Db, sessionId: string, tokens: Buffer): Promise<void> {
  await db('session').where({ session_id: sessionId }).update({ tokens });
}
