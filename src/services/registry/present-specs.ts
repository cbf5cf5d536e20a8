/** Which specs of a capability count for a call now: those of the instances it may be given to. */
import { isInRange, readRange } from '../../core/routing/version-range.ts';
import { listSpecs } from '../../db/capability-spec.ts';
import type { Db } from '../../db/connect.ts';
import type { InstanceFeed } from './instance-feed.ts';

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

export const listPresentSpecs = async (
  { db, feed }: { readonly db: Db; readonly feed: Pick<InstanceFeed, 'fleet'> },
  { capability, versionRange, tags }: SpecTarget,
): Promise<FoundSpecs> => {
  const isWanted = (version: string): boolean =>
    versionRange === null || isInRange(readRange(versionRange), version);
  const present = new Map<string, KnownSpec>();
  for (const { state, version, spec_digest, ...instance } of feed.fleet(capability).instances) {
    const isRoutable = (state === 'up' || state === 'suspect') && isWanted(version);
    if (!isRoutable || spec_digest === null || !tags.every((tag) => instance.tags.includes(tag))) continue;
    if (!present.has(spec_digest)) present.set(spec_digest, { version, digest: spec_digest });
  }
  if (present.size > 0) return { specs: [...present.values()], arePresent: true };
  const known = (await listSpecs(db, capability)).filter(({ version }) => isWanted(version));
  return { specs: known, arePresent: false };
};
