/**
 * Whether and how a step that failed for real escalates: its own keys, else the pipeline's defaults, else ours. A model
 * is never corrected by models. A step that is delivered at most once is asked about, never corrected on its own.
 */
import type { EscalatePolicy, PipelineDefinition, StepDefinition } from '../../../contracts/pipeline.ts';
import { defaultRetry } from '../../call/retry-policy.ts';
import { capabilityOf, stepKindOf } from '../step-kind.ts';

export interface ResolvedEscalation {
  readonly enabled: boolean;
  /** Executions after the first, and advisors, are not below it. */
  readonly start_level: number;
  /** Above it is a person. */
  readonly max_level: number;
  /** Null = no limit but the budgets. */
  readonly max_usd: number | null;
  readonly repair: 'off' | 'propose' | 'apply';
  readonly on_exhausted: 'wait' | 'fail';
  /** Nothing is executed before a person decided: the ladder begins at its end (`retry.max` is 0). */
  readonly needs_person: boolean;
}

type Defaults = Pick<PipelineDefinition, 'defaults'>;

export function resolveEscalation({ defaults = {} }: Defaults, step: StepDefinition): ResolvedEscalation {
  const policy: EscalatePolicy = { ...defaults.escalate, ...step.escalate };
  return {
    enabled: (policy.enabled ?? true) && stepKindOf(step) === 'call' && !isModel(step),
    start_level: policy.start_level ?? 0,
    max_level: policy.max_level ?? 4,
    max_usd: policy.max_usd ?? null,
    repair: policy.repair ?? 'propose',
    on_exhausted: policy.on_exhausted ?? 'wait',
    needs_person: (step.retry?.max ?? defaults.retry?.max ?? defaultRetry.max) === 0,
  };
}

export function isModel(step: Pick<StepDefinition, 'capability'>): boolean {
  return capabilityOf(step).startsWith('model.');
}
