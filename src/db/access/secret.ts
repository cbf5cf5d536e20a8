/** Secrets of projects: sealed values, with the capabilities and hosts that may receive them. */
import { secretLimits } from '@capstan/core/contracts/secret';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';

export interface SecretRow {
  readonly name: string;
  /** Of its value in UTF-8, as JSON writes it. */
  readonly bytes: number;
  readonly version: number;
  readonly capabilities: readonly string[];
  readonly hosts: readonly string[];
  readonly set_by: string;
  readonly set_at: Date;
  readonly last_used_at: Date | null;
}

export interface SealedValue {
  readonly sealed: Buffer;
  /** The id of the key that sealed it. */
  readonly key_id: string;
}

export type SealedSecretRow = SecretRow & SealedValue;

/** Sealed are 28 bytes, then the JSON list of project, name and value (clients/secret-cipher.ts). */
const shown = `name, version, capabilities, hosts, set_by, set_at, last_used_at,
  octet_length(sealed) - 38 - octet_length(project_id) - octet_length(name) as bytes`;

/** All of a project, by name; there are few. */
export function listSecrets(db: Db, projectId: string): Promise<readonly SecretRow[]> {
  return query<SecretRow>(db).all(
    `select ${shown} from secret where project_id = ? order by name collate "C"`,
    [projectId],
  );
}

interface NewSecret extends Pick<SecretRow, 'name' | 'capabilities' | 'hosts' | 'set_by'>, SealedValue {
  readonly project_id: string;
}

/** Sets it, or gives it another value. @returns undefined when the project has as many as it may have */
export function upsertSecret(trx: Db, secret: NewSecret): Promise<SecretRow | undefined> {
  const { capabilities, hosts, ...columns } = secret;
  return query<SecretRow>(trx).first(
    `insert into secret (project_id, name, capabilities, hosts, sealed, key_id, set_by)
     select :project_id, :name, :capabilities::text[], :hosts::text[], :sealed::bytea, :key_id, :set_by
     where (select count(*) from secret where project_id = :project_id and name <> :name) < :most
     on conflict (project_id, name) do update set version = secret.version + 1,
       capabilities = excluded.capabilities, hosts = excluded.hosts, sealed = excluded.sealed,
       key_id = excluded.key_id, set_by = excluded.set_by, set_at = clock_timestamp(), last_used_at = null
     returning ${shown}`,
    { ...columns, capabilities: [...capabilities], hosts: [...hosts], most: secretLimits.perProject },
  );
}

export function removeSecretRow(
  trx: Db,
  projectId: string,
  name: string,
): Promise<Pick<SecretRow, 'version'> | undefined> {
  return query<Pick<SecretRow, 'version'>>(trx).first(
    'delete from secret where project_id = ? and name = ? returning version',
    [projectId, name],
  );
}

/** Those of the names that the project has, with their sealed values. */
export function findSecrets(
  db: Db,
  projectId: string,
  names: readonly string[],
): Promise<readonly SealedSecretRow[]> {
  return query<SealedSecretRow>(db).all(
    `select ${shown}, sealed, key_id from secret where project_id = ? and name = any (?)`,
    [projectId, [...names]],
  );
}

/** Marks them as used, at most every ten seconds, so that parallel steps seldom write the same row. */
export async function markSecretsUsed(trx: Db, projectId: string, names: readonly string[]): Promise<void> {
  await trx.raw(
    `update secret set last_used_at = now() where (project_id, name) in (
       select project_id, name from secret where project_id = ? and name = any (?)
         and (last_used_at is null or last_used_at < now() - interval '10 seconds')
       for no key update skip locked)`,
    [projectId, [...names]],
  );
}

export interface ForeignlySealed extends SealedValue {
  readonly project_id: string;
  readonly name: string;
}

/** How many secrets each other key than this one has sealed. */
export function countUnderOtherKeys(
  db: Db,
  keyId: string,
): Promise<readonly { readonly key_id: string; readonly secrets: number }[]> {
  return query<{ key_id: string; secrets: number }>(db).all(
    `select key_id, count(*)::int as secrets from secret where key_id < :keyId or key_id > :keyId
     group by key_id order by key_id`,
    { keyId },
  );
}

/** The keys under which secrets, and answers that no step has taken yet, are sealed. */
export function listSealingKeys(
  db: Db,
): Promise<readonly { readonly key_id: string; readonly rows: number }[]> {
  return query<{ key_id: string; rows: number }>(db).all(
    `select key_id, count(*)::int as rows from (
       select key_id from secret
       union all select key_id from callback_answer where body is not null and key_id is not null
     ) sealed group by key_id order by key_id`,
  );
}

/** Locks some that these keys sealed, until the transaction ends. */
export function lockUnderKeys(
  trx: Db,
  keyIds: readonly string[],
  limit: number,
): Promise<readonly ForeignlySealed[]> {
  return query<ForeignlySealed>(trx).all(
    `select project_id, name, sealed, key_id from secret where key_id = any (?)
     order by project_id, name limit ? for no key update skip locked`,
    [[...keyIds], limit],
  );
}

export async function resealSecret(
  trx: Db,
  { project_id, name, sealed, key_id }: ForeignlySealed,
): Promise<void> {
  await trx.raw('update secret set sealed = ?, key_id = ? where project_id = ? and name = ?', [
    sealed,
    key_id,
    project_id,
    name,
  ]);
}
