/** Which specs of a capability count for a call now: those of the instances it may be given to. */
import { isInRange, readRange } from '../../core/routing/version-range.ts';
import type { Db } from '../../db/connect.ts';
import { listSpecs } from '../../db/spec/capability-spec.ts';
import type { FleetPoller } from '../routing/fleet/fleet-poller.ts';

export interface SpecTarget {
  readonly capability: string;
  readonly versionRange: string | null;
  readonly tags: readonly string[];
}

export interface KnownSpec {
  readonly version: string;
  readonly digest: string;
}

export interface FoundSpecs {
  /** Each once. */
  readonly specs: readonly KnownSpec[];
  /** False: no such instance is up, and these are all that were ever known, the oldest first. */
  readonly arePresent: boolean;
}

export async function listPresentSpecs(
  { db, fleet }: { readonly db: Db; readonly fleet: Pick<FleetPoller, 'of'> },
  target: SpecTarget,
): Promise<FoundSpecs> {
  const present = pickPresentSpecs(fleet, target);
  if (present.length > 0) return { specs: present, arePresent: true };
  const known = (await listSpecs(db, target.capability)).filter(({ version }) => isWanted(target, version));
  return { specs: known, arePresent: false };
}

/** Picks the specs of the instances that are up, each once. */
export function pickPresentSpecs(fleet: Pick<FleetPoller, 'of'>, target: SpecTarget): readonly KnownSpec[] {
  const present = new Map<string, KnownSpec>();
  for (const { state, version, spec_digest, tags } of fleet.of(target.capability).instances) {
    const isRoutable = (state === 'up' || state === 'suspect') && isWanted(target, version);
    if (!isRoutable || spec_digest === null || !target.tags.every((tag) => tags.includes(tag))) continue;
    if (!present.has(spec_digest)) present.set(spec_digest, { version, digest: spec_digest });
  }
  return [...present.values()];
}

export function isWanted({ versionRange }: Pick<SpecTarget, 'versionRange'>, version: string): boolean {
  return versionRange === null || isInRange(readRange(versionRange), version);
}
