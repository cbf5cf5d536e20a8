/**
 * Specs that were read from instances and accepted. They never change: other content has another digest. A check of a
 * whole definition reads the specs of many capabilities at once.
 */

import type { CapabilitySpec } from '../../contracts/capability.ts';
import type { Db } from '../connect.ts';
import { takeLock } from '../locks.ts';
import { query } from '../statements.ts';

export interface CapabilitySpecRow {
  readonly name: string;
  readonly version: string;
  readonly digest: string;
  readonly spec: CapabilitySpec;
}

export async function insertSpec(db: Db, row: CapabilitySpecRow): Promise<void> {
  await db.raw(
    `insert into capability_spec (name, version, digest, spec) values (?, ?, ?, ?)
     on conflict (name, version, digest) do nothing`,
    [row.name, row.version, row.digest, JSON.stringify(row.spec)],
  );
}

export async function findSpec(db: Db, digest: string): Promise<CapabilitySpec | null> {
  const row = await query<{ spec: CapabilitySpec }>(db).first(
    'select spec from capability_spec where digest = ? limit 1',
    [digest],
  );
  return row?.spec ?? null;
}

/** One spec for each registered version of a capability: the one in use, else the latest. */
export function listSpecs(db: Db, name: string): Promise<CapabilitySpecRow[]> {
  return query<CapabilitySpecRow>(db).all(
    `select distinct on (s.version) s.name, s.version, s.digest, s.spec
     from capability_spec s join instance i using (name, version)
     where s.name = ?
     order by s.version, (i.spec_digest is not distinct from s.digest) desc, s.created_at desc`,
    [name],
  );
}

/** Name to description, from the latest spec of each. */
export async function listDescriptions(
  db: Db,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await query<{ name: string; description: string }>(db).all(
    `select distinct on (name) name, spec ->> 'description' as description
     from capability_spec where name = any(?) order by name, created_at desc`,
    [[...names]],
  );
  return new Map(rows.map(({ name, description }) => [name, description]));
}

/**
 * Finds a routable instance that serves this version with another spec: while an instance is up, its version means one
 * spec. Serialises these checks until the transaction ends.
 */
export async function findRivalSpec(
  db: Db,
  {
    name,
    version,
    digest,
    instanceId,
  }: { name: string; version: string; digest: string; instanceId: string },
): Promise<{ readonly endpoint: string } | null> {
  await takeLock(db, 'capability_spec', name, version);
  const row = await query<{ endpoint: string }>(db).first(
    `select endpoint from instance
     where name = ? and version = ? and spec_digest <> ? and instance_id <> ? and state in ('up', 'suspect')
     order by registered_at limit 1`,
    [name, version, digest, instanceId],
  );
  return row ?? null;
}

/** One for each registered version of each capability: the one in use, else the latest. */
export function listKnownSpecs(db: Db, names: readonly string[]): Promise<Omit<CapabilitySpecRow, 'spec'>[]> {
  return query<CapabilitySpecRow>(db).all(
    `select distinct on (s.name, s.version) s.name, s.version, s.digest
     from capability_spec s join instance i using (name, version)
     where s.name = any(?)
     order by s.name, s.version, (i.spec_digest is not distinct from s.digest) desc, s.created_at desc`,
    [[...names]],
  );
}

/** By digest. */
export async function findSpecs(
  db: Db,
  digests: readonly string[],
): Promise<ReadonlyMap<string, CapabilitySpec>> {
  const rows = await query<{ digest: string; spec: CapabilitySpec }>(db).all(
    'select distinct on (digest) digest, spec from capability_spec where digest = any(?)',
    [[...digests]],
  );
  return new Map(rows.map(({ digest, spec }) => [digest, spec]));
}
