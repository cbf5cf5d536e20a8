/** For a plan: whose result a call would take. Nothing is led, waited for or copied. */
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import { resolveCache } from '../../core/definition/compile/cache-settings.ts';
import { type CachedResultRow, readResult } from '../../db/cache/cached-result.ts';
import { type CallToKey, digestOf, type KeyDependencies, keyCall } from './keyed-call.ts';

export interface PlannedStepCall extends Omit<CallToKey, 'policy'> {
  readonly definition: PipelineDefinition;
}

/** Of a step that has succeeded before, or of an equal call of the plan, which is made once. */
export type KeptFor = Pick<CachedResultRow, 'run_id' | 'step_id'> | 'equal_call';

/** Null = the call is made. */
export type FindKept = (call: PlannedStepCall) => Promise<KeptFor | null>;

/** Lookups of one plan, which takes no longer than a request may. */
const mostLookups = 1_000;

export function createFindKept(dependencies: KeyDependencies): FindKept {
  const known = new Map<string, KeptFor>();
  return async ({ definition, ...call }) => {
    const policy = resolveCache(definition, call.step);
    if (policy === null) return null;
    const keyed = await keyCall(dependencies, { ...call, policy });
    if (keyed === null) return null;
    const keys = [...keyed.keys.values()];
    const name = `${keys.join()} ${policy.ttlMs}`;
    const before = known.get(name);
    if (before !== undefined || known.size >= mostLookups) return before ?? null;
    const result = await readResult(dependencies.db, {
      project_id: call.projectId,
      keys,
      ttl_ms: policy.ttlMs,
    });
    const found = result !== undefined && (await isWhole(dependencies, result)) ? result : null;
    known.set(name, found ?? 'equal_call');
    return found;
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
