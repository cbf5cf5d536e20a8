/** Sessions as an administrator sees and ends them. */
import type { Db } from '../connect.ts';
import { isLiveKey } from './api-key.ts';
import type { EndedSession } from './session.ts';

export interface SessionRow {
  readonly session_id: string;
  readonly key_id: string;
  readonly name: string;
  readonly email: string | null;
  readonly scopes: readonly string[];
  readonly created_at: Date;
  readonly expires_at: Date;
  /** Null: nobody is asked about it. */
  readonly checked_at: Date | null;
}

interface SessionFilter {
  /** Whose key has one of them. */
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

/** Newest first; those that are not over. */
export async function listSessions(
  db: Db,
  { projects, user, after, limit }: SessionFilter,
): Promise<readonly SessionRow[]> {
  const { rows } = await db.raw<{ rows: SessionRow[] }>(
    `select s.session_id, k.key_id, k.name, p.email, k.scopes, s.created_at, s.expires_at,
       case when s.is_renewed then s.checked_at end as checked_at
     from session s join api_key k using (key_id) left join person p using (key_id)
     where k.projects && ?::text[] and s.expires_at > now() and ${isLiveKey('k')}
       and (?::text is null or ${isOf}) and (?::text is null or s.session_id < ?)
     order by s.session_id desc limit ?`,
    [[...projects], ...namesOf(user), after, after, limit],
  );
  return rows;
}

/** Those of a user, or the one of an id, whose key has one of `projects`. */
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

/** By what the provider tells: the sign-in of that name, or else all of the person. */
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

/** All of a person. */
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

/** Takes those that the provider was not asked about for so long; nobody else takes them until the next time. */
export async function takeDueSessions(
  db: Db,
  { seconds, limit }: { readonly seconds: number; readonly limit: number },
): Promise<readonly DueSession[]> {
  const { rows } = await db.raw<{ rows: DueSession[] }>(
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
  return rows;
}

/** The provider has just said that the person may stay. */
export async function keepChecked(trx: Db, sessionId: string): Promise<void> {
  await trx.raw('update session set checked_at = now() where session_id = ?', [sessionId]);
}

export async function keepTokens(db: Db, sessionId: string, tokens: Buffer): Promise<void> {
  await db('session').where({ session_id: sessionId }).update({ tokens });
}
