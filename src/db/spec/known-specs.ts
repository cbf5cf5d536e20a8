/** Specs of many capabilities at once, for checks of a whole definition. */
import type { CapabilitySpec } from '../../contracts/capability.ts';
import type { Db } from '../connect.ts';
import type { CapabilitySpecRow } from './capability-spec.ts';

/** One for each registered version of each capability: the one in use, else the latest that was. */
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
