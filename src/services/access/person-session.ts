/** Opens the session of a person, or says why there is none. */
import type { Identity } from '../../clients/oidc/identity.ts';
import { sessionHours } from '../../contracts/bounds.ts';
import type { Grant, GroupRules, SignInRefused } from '../../contracts/sign-in.ts';
import { lockKeys } from '../../db/access/key-lineage.ts';
import { findPerson, type PersonRow } from '../../db/access/person.ts';
import { insertSession } from '../../db/access/session.ts';
import type { Db } from '../../db/connect.ts';
import { newId } from '../ids.ts';
import { randomSecret } from './key-text.ts';
import { auditIn, dropPerson, keepPerson, resolveGrants } from './person-rights.ts';
import { digestOf } from './sessions.ts';

export interface PersonSignIn {
  readonly identity: Identity;
  readonly rules: GroupRules;
  /** Digest of what began it. */
  readonly signIn: Buffer;
  /** Sealed. */
  readonly tokens: Buffer;
}

/** How many groups of a person a line or an entry names. */
const shownGroups = 50;

async function refuse(trx: Db, { identity }: PersonSignIn, why: SignInRefused): Promise<SignInRefused> {
  const { issuer, subject, email, groups } = identity;
  const data = { reason: why.refused, issuer, email, groups: groups.slice(0, shownGroups) };
  const entry = { actor: 'sign-in', action: 'session.refused', subject: subject.slice(0, 128), data };
  await auditIn(trx, [], entry);
  return why;
}

/** What the person may do; or why nothing. */
async function judge(
  trx: Db,
  known: PersonRow | null,
  { identity, rules }: PersonSignIn,
): Promise<readonly Grant[] | SignInRefused> {
  if (known !== null && known.revoked_at !== null)
    return { refused: 'revoked', detail: `${known.key_id} was revoked here` };
  const grants = await resolveGrants(trx, rules, identity.groups);
  if (grants.length > 0) return grants;
  if (known !== null) await dropPerson(trx, known);
  const groups = identity.groups.slice(0, shownGroups).join(', ') || 'none';
  return { refused: 'no_group', detail: `groups at the provider: ${groups}; none of them gives a project` };
}

/** Null: the sign-in has opened one before. */
async function open(
  trx: Db,
  key_id: string,
  { identity, signIn, tokens }: PersonSignIn,
): Promise<string | null> {
  const secret = `ses_${randomSecret()}`;
  const session_id = newId('session');
  const isRenewed = identity.refreshToken !== null;
  const isNew = await insertSession(trx, {
    session_id,
    secret_sha256: digestOf(secret),
    keyId: key_id,
    hours: sessionHours,
    provider: { signIn, sid: identity.sid, tokens, isRenewed },
  });
  if (!isNew) return null;
  const data = { session_id, email: identity.email };
  const { projects } = await trx('api_key').where({ key_id }).first('projects');
  await auditIn(trx, projects, { actor: key_id, action: 'session.opened', subject: key_id, data });
  return secret;
}

/** @returns its secret */
export function openPersonSession(
  db: Db,
  signIn: PersonSignIn,
): Promise<{ readonly secret: string } | SignInRefused> {
  const { identity } = signIn;
  return db.transaction(async (trx) => {
    await lockKeys(trx);
    const known = await findPerson(trx, identity.issuer, identity.subject);
    const grants = await judge(trx, known, signIn);
    if ('refused' in grants) return refuse(trx, signIn, grants);
    const { key_id } = await keepPerson(trx, known, { identity, grants });
    const secret = await open(trx, key_id, signIn);
    if (secret !== null) return { secret };
    return { refused: 'used', detail: 'the sign-in has opened a session before' };
  });
}
