/** People who sign in at the provider. The key with the same id holds their permissions. */
import type { KeyScope } from '@capstan/core/contracts/access';
import type { Grant } from '@capstan/core/contracts/sign-in';
import type { Db } from '../connect.ts';
import { query, toJsonb } from '../statements.ts';

export interface PersonRow {
  readonly key_id: string;
  readonly projects: readonly string[];
  readonly grants: readonly Grant[];
  readonly revoked_at: Date | null;
}

export interface PersonFacts {
  readonly name: string;
  readonly email: string | null;
  readonly grants: readonly Grant[];
  readonly holdsEveryProject: boolean;
  /** The scopes of all grants together. */
  readonly scopes: readonly KeyScope[];
  readonly projects: readonly string[];
}

export interface NewPerson extends PersonFacts {
  readonly key_id: string;
  readonly issuer: string;
  readonly subject: string;
  /** Digest of a secret that is not stored anywhere. */
  readonly secret_sha256: Buffer;
}

export async function findPerson(trx: Db, issuer: string, subject: string): Promise<PersonRow | null> {
  const row = await query<PersonRow>(trx).first(
    `select key_id, k.projects, p.grants, k.revoked_at from person p join api_key k using (key_id)
     where p.issuer = ? and p.subject = ?`,
    [issuer, subject],
  );
  return row ?? null;
}

/** Finds those of `wanted` that are already taken. */
export async function findTakenIds(trx: Db, wanted: readonly string[]): Promise<readonly string[]> {
  const rows = await query<{ key_id: string }>(trx).all('select key_id from api_key where key_id = any(?)', [
    [...wanted],
  ]);
  return rows.map(({ key_id }) => key_id);
}

export async function insertPerson(trx: Db, person: NewPerson): Promise<void> {
  const { key_id, name, secret_sha256, scopes, projects } = person;
  await trx('api_key').insert({ key_id, name, secret_sha256, scopes: [...scopes], projects: [...projects] });
  const { issuer, subject, email, grants, holdsEveryProject: holds_every_project } = person;
  await trx('person').insert({
    key_id,
    issuer,
    subject,
    email,
    grants: toJsonb([...grants]),
    holds_every_project,
  });
}

export async function updatePerson(trx: Db, key_id: string, facts: PersonFacts): Promise<void> {
  const { name, scopes, projects, email, grants, holdsEveryProject: holds_every_project } = facts;
  await trx('api_key')
    .where({ key_id })
    .update({ name, scopes: [...scopes], projects: [...projects] });
  await trx('person')
    .where({ key_id })
    .update({ email, grants: toJsonb([...grants]), holds_every_project });
}

/** The key keeps its projects, by which an administrator finds and revokes it. */
export async function clearGrants(trx: Db, key_id: string): Promise<void> {
  await trx('person')
    .where({ key_id })
    .update({ grants: toJsonb([]), holds_every_project: false });
}

/** Keys that the person made and that still work. */
export async function listKeysMadeBy(
  trx: Db,
  keyId: string,
): Promise<readonly { key_id: string; scopes: KeyScope[]; projects: string[] }[]> {
  const { rows } = await trx.raw(
    `select key_id, scopes, projects from api_key
     where created_by = ? and revoked_at is null and (expires_at is null or expires_at > now())`,
    [keyId],
  );
  return rows;
}

/** Projects by id or by name, oldest first. */
export async function findProjectsCalled(
  trx: Db,
  called: readonly string[],
): Promise<readonly { project_id: string; name: string }[]> {
  const { rows } = await trx.raw(
    'select project_id, name from project where (project_id = any(?) or name = any(?)) and erasing_since is null order by project_id',
    [[...called], [...called]],
  );
  return rows;
}

/** @returns null if the id is a key's */
export async function findEmail(db: Db, key_id: string): Promise<{ email: string | null } | null> {
  const row = await db('person').where({ key_id }).first('email');
  return row ?? null;
}

/** Whether one of the person's groups holds all projects, including future ones. */
export async function holdsEvery(db: Db, key_id: string): Promise<boolean> {
  const row = await db('person').where({ key_id }).first('holds_every_project');
  return row?.holds_every_project === true;
}
