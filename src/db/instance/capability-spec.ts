/**
 * Specs that were read from instances and accepted. They never change: other content has another digest. A check of a
 * whole definition reads the specs of many capabilities at once.
 */
import type { CapabilitySpec } from '../../contracts/capability.ts';
import type { Db } from '../connect.ts';

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
  const { rows } = await db.raw<{ rows: { spec: CapabilitySpec }[] }>(
    'select spec from capability_spec where digest = ? limit 1',
    [digest],
  );
  return rows[0]?.spec ?? null;
}

/** One spec for each registered version of a capability: the one in use, else the latest. */
export async function listSpecs(db: Db, name: string): Promise<CapabilitySpecRow[]> {
  const { rows } = await db.raw<{ rows: CapabilitySpecRow[] }>(
    `select distinct on (s.version) s.name, s.version, s.digest, s.spec
     from capability_spec s join instance i using (name, version)
     where s.name = ?
     order by s.version, (i.spec_digest is not distinct from s.digest) desc, s.created_at desc`,
    [name],
  );
  return rows;
}

/** Name to description, from the latest spec of each. */
export async function listDescriptions(
  db: Db,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await db.raw<{ rows: { name: string; description: string }[] }>(
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
  await db.raw('select pg_advisory_xact_lock(hashtextextended(?, 0))', [
    `capability_spec ${name} ${version}`,
  ]);
  const { rows } = await db.raw<{ rows: { endpoint: string }[] }>(
    `select endpoint from instance
     where name = ? and version = ? and spec_digest <> ? and instance_id <> ? and state in ('up', 'suspect')
     order by registered_at limit 1`,
    [name, version, digest, instanceId],
  );
  return rows[0] ?? null;
}

/** One for each registered version of each capability: the one in use, else the latest. */
export async function listKnownSpecs(
  db: Db,
  names: readonly string[],
): Promise<Omit<CapabilitySpecRow, 'spec'>[]> {
  const { rows } = await db.raw<{ rows: CapabilitySpecRow[] }>(
    `select distinct on (s.name, s.version) s.name, s.version, s.digest
     from capability_spec s join instance i using (name, version)
     where s.name = any(?)
     order by s.name, s.version, (i.spec_digest is not distinct from s.digest) desc, s.created_at desc`,
    [[...names]],
  );
  return rows;
}

/** By digest. */
export async function findSpecs(
  db: Db,
  digests: readonly string[],
): Promise<ReadonlyMap<string, CapabilitySpec>> {
  const { rows } = await db.raw<{ rows: { digest: string; spec: CapabilitySpec }[] }>(
    'select distinct on (digest) digest, spec from capability_spec where digest = any(?)',
    [[...digests]],
  );
  return new Map(rows.map(({ digest, spec }) => [digest, spec]));
}
