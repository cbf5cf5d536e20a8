/**
 * People and their rights. P1: a person has exactly the rights that their groups gave at the last check. When those
 * change, their sessions end, and keys that they made and that exceed their rights are revoked. P2: a person whose
 * groups give nothing has no session, and the keys that they made are revoked. P3: a person whose key is revoked cannot
 * sign in again.
 */

import {
  everyProject,
  grantsOf,
  holdsEveryProject,
  scopesByProject,
} from '@capstan/core/access/group-grants';
import type { Grant, GroupRules } from '@capstan/core/contracts/sign-in';
import type { Identity } from '../../clients/openid-claims.ts';
import { revokeWithKeysBelow } from '../../db/access/api-key.ts';
import { insertAudits } from '../../db/access/audit.ts';
import {
  clearGrants,
  findProjectsCalled,
  insertPerson,
  listKeysMadeBy,
  type PersonFacts,
  type PersonRow,
  updatePerson,
} from '../../db/access/person.ts';
import { listProjectIds } from '../../db/access/project.ts';
import { type EndedSession, endSessionsOfPerson } from '../../db/access/session.ts';
import type { Db } from '../../db/connect.ts';
import { choosePersonId, holdsScope } from './caller.ts';
import { digestOf, randomSecret } from './key-text.ts';

/** Replaces project names by ids; the oldest of several with one name counts, and unknown ones are dropped. */
export async function resolveGrants(
  trx: Db,
  rules: GroupRules,
  groups: readonly string[],
): Promise<readonly Grant[]> {
  const wanted = grantsOf(rules, groups);
  const found = await findProjectsCalled(trx, [...new Set(wanted.flatMap(({ projects }) => projects))]);
  const idOf = (called: string): string | undefined => {
    if (called === everyProject) return called;
    const row = found.find(({ project_id }) => project_id === called);
    return (row ?? found.find(({ name }) => name === called))?.project_id;
  };
  return wanted
    .map(({ scopes, projects }) => ({
      scopes,
      projects: projects.map(idOf).filter((id) => id !== undefined),
    }))
    .filter(({ projects }) => projects.length > 0);
}

async function toFacts(trx: Db, { name, email, subject }: Identity, grants: readonly Grant[]) {
  const rights = scopesByProject(grants, holdsEveryProject(grants) ? await listProjectIds(trx) : []);
  const facts: PersonFacts = {
    name: name ?? email ?? subject,
    email,
    grants,
    holdsEveryProject: holdsEveryProject(grants),
    scopes: [...new Set(grants.flatMap(({ scopes }) => scopes))],
    projects: [...rights.keys()],
  };
  return { facts, rights };
}

function isSame(left: readonly Grant[], right: readonly Grant[]): boolean {
  const text = (grants: readonly Grant[]): string =>
    JSON.stringify(grants.map(({ scopes, projects }) => [scopes, projects]));
  return text(left) === text(right);
}

/** One audit entry for each project that it concerns. */
export function auditIn(
  trx: Db,
  projects: readonly string[],
  entry: Omit<Parameters<typeof insertAudits>[1][number], 'project_id'>,
): Promise<void> {
  const of = projects.length === 0 ? [null] : projects;
  return insertAudits(
    trx,
    of.map((project_id) => ({ ...entry, project_id })),
  );
}

type Rights = ReturnType<typeof scopesByProject>;

async function revokeWhatHoldsMore(trx: Db, keyId: string, rights: Rights): Promise<void> {
  for (const made of await listKeysMadeBy(trx, keyId)) {
    const isHeld = made.projects.every((project) => {
      const held = rights.get(project);
      return held !== undefined && made.scopes.every((scope) => holdsScope({ scopes: held }, scope));
    });
    if (isHeld) continue;
    for (const { key_id, projects } of await revokeWithKeysBelow(trx, made.key_id))
      await auditIn(trx, projects, {
        actor: keyId,
        action: 'key.revoked',
        subject: key_id,
        data: { reason: `${keyId} does not hold what it holds any more` },
      });
  }
}

function auditChange(
  trx: Db,
  { key_id, projects: concerned }: Pick<PersonRow, 'key_id' | 'projects'>,
  grants: readonly Grant[],
): Promise<void> {
  const data = {
    grants: grants.map(({ scopes, projects }) => ({ scopes: [...scopes], projects: [...projects] })),
  };
  return auditIn(trx, concerned, { actor: key_id, action: 'person.changed', subject: key_id, data });
}

async function createPerson(trx: Db, identity: Identity, grants: readonly Grant[]): Promise<string> {
  const { facts } = await toFacts(trx, identity, grants);
  const key_id = await choosePersonId(trx, identity);
  const { issuer, subject } = identity;
  const secret_sha256 = digestOf(randomSecret());
  await insertPerson(trx, { ...facts, key_id, issuer, subject, secret_sha256 });
  return key_id;
}

/**
 * Requires the lock of keys.
 *
 * @param grants at least one
 * @returns the person's id; a change of their rights has ended all of their sessions
 */
export async function keepPerson(
  trx: Db,
  known: PersonRow | null,
  { identity, grants }: { readonly identity: Identity; readonly grants: readonly Grant[] },
): Promise<string> {
  if (known === null) return createPerson(trx, identity, grants);
  const { key_id } = known;
  const { facts, rights } = await toFacts(trx, identity, grants);
  await updatePerson(trx, key_id, facts);
  if (isSame(known.grants, grants)) return key_id;
  await endSessionsOfPerson(trx, key_id);
  await revokeWhatHoldsMore(trx, key_id, rights);
  await auditChange(trx, { key_id, projects: facts.projects }, grants);
  return key_id;
}

/**
 * Ends the sessions of a person whose groups give nothing any more; requires the lock of keys. @returns those sessions
 */
export async function dropPerson(trx: Db, known: PersonRow): Promise<readonly EndedSession[]> {
  const ended = await endSessionsOfPerson(trx, known.key_id);
  if (known.grants.length === 0) return ended;
  await clearGrants(trx, known.key_id);
  await revokeWhatHoldsMore(trx, known.key_id, new Map());
  await auditChange(trx, known, []);
  return ended;
}
