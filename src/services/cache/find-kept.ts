/** For a plan: the result that a call would take now. Nothing is led, waited for or copied. */
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import { resolveCache } from '../../core/definition/compile/cache-settings.ts';
import { type CachedResultRow, readResult } from '../../db/cache/cached-result.ts';
import { type CallToKey, digestOf, type KeyDependencies, keyCall } from './keyed-call.ts';

export interface PlannedStepCall extends Omit<CallToKey, 'policy'> {
  readonly definition: PipelineDefinition;
}

export type FindKept = (call: PlannedStepCall) => Promise<CachedResultRow | null>;

/** Lookups of one plan, which takes no longer than a request may. */
const mostLookups = 1_000;

export function createFindKept(dependencies: KeyDependencies): FindKept {
  let left = mostLookups;
  return async ({ definition, ...call }) => {
    const policy = resolveCache(definition, call.step);
    if (policy === null || left <= 0) return null;
    left -= 1;
    const keyed = await keyCall(dependencies, { ...call, policy });
    if (keyed === null) return null;
    const keys = [...keyed.keys.values()];
    const result = await readResult(dependencies.db, {
      project_id: call.projectId,
      keys,
      ttl_ms: policy.ttlMs,
    });
    return result !== undefined && (await isWhole(dependencies, result)) ? result : null;
  };
}

async function isWhole(
  { media }: Pick<KeyDependencies, 'media'>,
  { files }: CachedResultRow,
): Promise<boolean> {
  for (const [reference, sha256] of Object.entries(files)) {
    if ((await digestOf(media, reference)) !== sha256) return false;
  }
  return true;
}
