/**
 * Specs that were read from instances and accepted. They never change: other content has another digest. A check of a
 * whole definition reads the specs of many capabilities at once.
 */

import type { CapabilitySpec } from '@capstan/core/contracts/capability';
import { evictedAfterMs } from '@capstan/core/contracts/limits';
import type { Db } from '../connect.ts';
import { takeLock } from '../locks.ts';
import { query } from '../statements.ts';
import type { NameInProject } from './capability-name.ts';

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

/** The specs that the instances `i` of a project's view returned last; `serves` limits them. */
const specsOfInstances = `from instance i
  join capability_spec s on s.name = i.name and s.version = i.version and s.digest = i.known_digest`;

/** A spec in use goes first, then those of the project's own instances, then the latest. */
const bestFirst = `(i.spec_digest is not null) desc, (i.owner_project = :projectId) desc, s.created_at desc`;

/** One spec for each version of a capability that serves the project: the one in use, else the latest. */
export function listSpecs(db: Db, { projectId, name }: NameInProject): Promise<CapabilitySpecRow[]> {
  return query<CapabilitySpecRow>(db).all(
    `select distinct on (s.version) s.name, s.version, s.digest, s.spec ${specsOfInstances}
     where i.name = :name and serves(i.owner_project, i.shared_with, :projectId) order by s.version, ${bestFirst}`,
    { projectId, name },
  );
}

/** Names of capabilities, as a project knows them. */
interface NamesInProject {
  readonly projectId: string;
  readonly names: readonly string[];
}

/** Of a spec: its description, and all of it when it was asked for. */
interface BestSpec {
  readonly name: string;
  readonly description: string;
  readonly spec: CapabilitySpec | null;
}

/** By name: the spec in use of each, else the latest. @param isWhole whether more than the description is read */
export async function listBestSpecs(
  db: Db,
  { projectId, names }: NamesInProject,
  isWhole: boolean,
): Promise<ReadonlyMap<string, BestSpec>> {
  const rows = await query<BestSpec>(db).all(
    `select distinct on (s.name) s.name, s.spec ->> 'description' as description,
       case when :isWhole then s.spec end as spec ${specsOfInstances}
     where i.name = any(:names) and serves(i.owner_project, i.shared_with, :projectId) order by s.name, ${bestFirst}`,
    { projectId, names: [...names], isWhole },
  );
  return new Map(rows.map((row) => [row.name, row]));
}

/** A spec that an instance has returned. */
interface ReturnedSpec extends Pick<CapabilitySpecRow, 'name' | 'version' | 'digest'> {
  readonly instanceId: string;
  readonly projectId: string;
}

/**
 * Finds a routable instance of the same project that serves this version with another spec: while an instance is up,
 * its version means one spec. Serialises these checks until the transaction ends.
 */
export async function findRivalSpec(
  db: Db,
  { name, version, digest, instanceId, projectId }: ReturnedSpec,
): Promise<{ readonly endpoint: string } | null> {
  await takeLock(db, 'capability_spec', name, version);
  const row = await query<{ endpoint: string }>(db).first(
    `select endpoint from instance
     where name = ? and version = ? and spec_digest <> ? and instance_id <> ? and owner_project = ?
       and state in ('up', 'suspect')
     order by registered_at limit 1`,
    [name, version, digest, instanceId, projectId],
  );
  return row ?? null;
}

/**
 * Whether an instance of the same name in another project was found at the same place and may be there still. A project
 * to which an operator has assigned the name goes before others.
 */
export function isPeerOfOthers(
  db: Db,
  { name, projectId, peer }: NameInProject & { readonly peer: string },
): Promise<boolean> {
  return query(db).some(
    `select 1 from instance i left join publisher p on p.name = i.name and p.set_by is not null
     where i.name = :name and i.peer = :peer and i.owner_project <> :projectId
       and coalesce(i.down_since > now() - interval '${evictedAfterMs} milliseconds', true)
       and not coalesce(:projectId = any(p.projects) and i.owner_project <> all(p.projects), false) limit 1`,
    { name, peer, projectId },
  );
}

/** One for each version of each capability that serves the project: the one in use, else the latest. */
export function listKnownSpecs(
  db: Db,
  { projectId, names }: NamesInProject,
): Promise<Omit<CapabilitySpecRow, 'spec'>[]> {
  return query<CapabilitySpecRow>(db).all(
    `select distinct on (s.name, s.version) s.name, s.version, s.digest ${specsOfInstances}
     where i.name = any(:names) and serves(i.owner_project, i.shared_with, :projectId) order by s.name, s.version, ${bestFirst}`,
    { projectId, names: [...names] },
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
