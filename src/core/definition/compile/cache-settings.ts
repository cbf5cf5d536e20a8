/** Whether and how long a step takes results of equal calls: its own key, else the pipeline's default. */
import type { CachePolicy, PipelineDefinition, StepDefinition } from '../../../contracts/pipeline.ts';
import { parseDuration } from '../../duration.ts';
import { stepKindOf } from '../step-kind.ts';

export interface ResolvedCache extends Pick<CachePolicy, 'scope'> {
  readonly ttlMs: number;
  /** Also of capabilities that do not call themselves deterministic. */
  readonly insists: boolean;
}

/** Null = every call is made. */
export function resolveCache(
  { defaults = {} }: Pick<PipelineDefinition, 'defaults'>,
  step: StepDefinition,
): ResolvedCache | null {
  const { ttl, scope, insist = false } = step.cache ?? defaults.cache ?? { ttl: '0s' };
  const ttlMs = parseDuration(ttl);
  return ttlMs === 0 || stepKindOf(step) !== 'call' ? null : { ttlMs, scope, insists: insist };
}
